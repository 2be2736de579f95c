"""Things that a plan has no equal of: each is noted."""

import gevent
from locust import HttpUser, LoadTestShape, TaskSet, User, between, events, tag, task
from somewhere import helper


@events.test_start.add_listener
def on_test_start(environment, **kwargs):
    print("begin")


events.quitting.add_listener(lambda **kwargs: None)


class OtherClient(User):
    @task
    def call(self):
        self.client.call()


class Rest(TaskSet):
    @task
    def look(self):
        self.client.get("/rest")

    @task
    def maybe_leave(self):
        self.client.get("/leave")
        if helper():
            self.interrupt()


class Unsupported(HttpUser):
    host = "http://127.0.0.1:8080"
    wait_time = between(1, 2)
    fixed_count = 1
    tasks = [Rest]

    @tag("slow")
    @task
    def tagged(self):
        self.client.get("/tagged", proxies={"http": "http://127.0.0.1:1"}, verify=False)

    @task
    def program(self):
        try:
            self.client.get("/try")
        except Exception:
            self.client.get("/except")
        pool = gevent.pool.Pool()
        pool.join()
        self.client.get("/unknown/" + helper())
        self.schedule_task(self.nothing)
        self.environment.runner.quit()

    @task
    def files(self):
        with open("accounts.csv") as file:
            self.client.post("/upload", files={"file": file}, stream=True)
        with self.client.get("/slow", catch_response=True) as response:
            if response.elapsed.total_seconds() > 1:
                response.failure("slow")
            print(response.url)
        response = self.client.get("/again", allow_redirects=False)
        if response.history:
            print("moved")

    @task
    def nothing(self):
        helper()

    @helper
    def other(self):
        pass


class DoubleWave(LoadTestShape):
    def tick(self):
        return (self.get_run_time() // 10, 1)
