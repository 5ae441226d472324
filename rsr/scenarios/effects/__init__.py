"""Effects: physics that MuJoCo lacks, their laws, and what happens to commands before they act."""
