from locust import FastHttpUser, constant_throughput, task


class FastUser(FastHttpUser):
    host = "http://127.0.0.1:8080"
    wait_time = constant_throughput(2)
    network_timeout = 10.0

    @task
    def index(self):
        self.client.get("/fast", headers={"X-Fast": "yes"})

    @task
    def item(self):
        with self.rest("POST", "/items", json={"name": "x"}) as response:
            number = response.js["id"]
        with self.rest("GET", f"/items/{number}", name="/items/[id]"):
            pass
