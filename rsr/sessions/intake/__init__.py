"""The gate for recordings from outside: screened, unpacked within bounds, or set aside with the reason."""
