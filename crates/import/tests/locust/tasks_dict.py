"""Tasks that are functions, as in older files."""

from locust import HttpUser, TaskSet, constant


def index(l):
    l.client.get("/")


def stats(user):
    user.client.get("/stats/requests")


class UserTasks(TaskSet):
    def page404(self):
        with self.client.get("/does_not_exist", catch_response=True) as response:
            if response.status_code == 404:
                response.success()

    tasks = {index: 5, stats: 2, page404: 1}



class WebsiteUser(HttpUser):
    host = "http://127.0.0.1:8080"
    min_wait = 2000
    max_wait = 5000
    wait_time = constant(3)
    tasks = [UserTasks]
