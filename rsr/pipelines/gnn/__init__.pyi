from rsr.pipelines.gnn.table import GNN as GNN
