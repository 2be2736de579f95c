"""A forum: most of the time visitors browse, and now and then they read threads until they have had enough."""

from locust import HttpUser, TaskSet, constant, task


class ForumThread(TaskSet):
    @task(4)
    def read(self):
        self.client.get("/forum/thread/1")

    @task(2)
    def answer(self):
        self.client.post("/forum/thread/1", data={"text": "I see", "anonymous": True})

    @task(1)
    def stop(self):
        self.interrupt()


class ForumUser(HttpUser):
    host = "http://127.0.0.1:8080"
    wait_time = constant(1)
    tasks = {ForumThread: 2}

    @task(10)
    class ForumPage(TaskSet):
        wait_time = constant(0.5)

        @task
        def page(self):
            self.client.get("/forum/page")

        @task
        def stop(self):
            self.interrupt(reschedule=False)

    @task
    def about(self):
        self.client.get("/about")
