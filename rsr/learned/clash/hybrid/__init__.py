"""The hybrid simulator of round noses on prisms: MuJoCo, with the impacts of an adapted model."""
