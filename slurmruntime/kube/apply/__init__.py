"""Create objects and keep them as desired, by server-side apply."""
