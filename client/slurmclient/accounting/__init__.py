"""What slurmdbd keeps."""
