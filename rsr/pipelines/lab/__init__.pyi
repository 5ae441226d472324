from rsr.pipelines.lab.approval import require_approval as require_approval
