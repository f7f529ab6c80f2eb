"""Who should do it: encoders, capability index, eligibility, scores, decisions."""
