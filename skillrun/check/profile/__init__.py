"""Rules about Seatbelt profiles, our own or anybody's."""
