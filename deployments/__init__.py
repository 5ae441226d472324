"""The files of the deployments; installed as `rsr_flows.deployments`, where `flows/serve.py` finds them."""
