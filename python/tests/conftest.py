from hypothesis import HealthCheck, settings

settings.register_profile("wstore", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("wstore")
