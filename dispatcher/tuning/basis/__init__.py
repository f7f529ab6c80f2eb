"""What every part of tuning stands on: rows and sets, registrations, figures with intervals."""
