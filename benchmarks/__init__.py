"""What n-CPS costs here, beside the published algorithms transcribed plainly: ``python -m benchmarks`` or ``make bench``."""
