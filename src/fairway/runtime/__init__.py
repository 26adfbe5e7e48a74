"""The furniture that every program shares: settings, clock, telemetry, supervision."""
