from common.paths import ITEMS, show

from locust import HttpUser, constant, task


class ModuleUser(HttpUser):
    host = "http://127.0.0.1:8080"
    wait_time = constant(1)

    @task
    def items(self):
        self.client.get(ITEMS)
        for number in (1, 2, 3):
            show(self.client, number)
