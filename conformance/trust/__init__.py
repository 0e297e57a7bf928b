"""What keeps a verdict honest: the subject cannot ask the oracle, the kit stays as it was installed, the judge is not blind."""
