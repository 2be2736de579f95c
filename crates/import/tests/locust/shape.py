from locust import HttpUser, LoadTestShape, constant, task


class ShapedUser(HttpUser):
    host = "http://127.0.0.1:8080"
    wait_time = constant(1)

    @task
    def index(self):
        self.client.get("/")


class StagesShape(LoadTestShape):
    """Each stage ends at its `duration`."""

    stages = [
        {"duration": 60, "users": 10, "spawn_rate": 10},
        {"duration": 100, "users": 50, "spawn_rate": 10},
        {"duration": 180, "users": 100, "spawn_rate": 10},
        {"duration": 220, "users": 30, "spawn_rate": 10},
    ]

    def tick(self):
        run_time = self.get_run_time()
        for stage in self.stages:
            if run_time < stage["duration"]:
                return (stage["users"], stage["spawn_rate"])
        return None
