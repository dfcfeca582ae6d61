"""How often Berth's rules agree with upstream: random object sets, both asked, differences kept."""
