from rsr.pipelines.clash.table import CLASH as CLASH
