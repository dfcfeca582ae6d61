"""`berth`: Berth's command line. It speaks to any Berth by its API and shares no code with it."""
