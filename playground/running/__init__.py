"""Programs on this machine: started, kept, found again and ended; and the servers Berth needs."""
