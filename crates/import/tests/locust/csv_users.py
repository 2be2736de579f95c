import csv
import random

from locust import HttpUser, constant, task

with open("accounts.csv", newline="") as file:
    ACCOUNTS = list(csv.DictReader(file))

CITIES = [{"name": "Paris", "country": "fr"}]


class AccountUser(HttpUser):
    host = "http://127.0.0.1:8080"
    wait_time = constant(1)

    @task
    def sign_in(self):
        account = random.choice(ACCOUNTS)
        self.client.post("/login", data={"user": account["user"], "password": account["password"]})

    @task
    def city(self):
        city = random.choice(CITIES)
        self.client.get(f"/cities/{city['country']}/{city['name']}", name="/cities/[country]/[name]")
