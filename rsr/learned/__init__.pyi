from rsr.learned import clash as clash, gnn as gnn
