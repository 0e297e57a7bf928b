"""False alarms: do the suites ever reject what is right?"""
