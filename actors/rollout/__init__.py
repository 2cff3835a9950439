"""The rollout room."""
