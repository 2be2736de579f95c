"""What is made is looked at, changed and removed."""

import logging

from locust import HttpUser, between, task
from locust.exception import RescheduleTask

log = logging.getLogger(__name__)


class Editor(HttpUser):
    host = "http://127.0.0.1:8080"
    wait_time = between(1, 3)

    @task
    def life(self):
        made = self.client.post("/articles", json={"title": "New"})
        if made.status_code != 200:
            raise RescheduleTask()
        article = made.json()
        number = article["id"]
        self.client.get(f"/articles/{number}", name="/articles/[id]")
        self.client.put(f"/articles/{number}", json={"title": "Newer", "author": article["user"]["name"]},
                        name="/articles/[id]")
        trace = made.headers["X-Trace"]
        self.client.delete(f"/articles/{number}", headers={"X-Trace": trace}, name="/articles/[id]")

    @task
    def follow(self):
        following = self.client.get("/first").json()["next"]
        self.client.get(following, name="/next")
