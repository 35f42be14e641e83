"""Commands about batch jobs (`jobs`): so far `submit`."""
