package computerdatabase

import io.gatling.core.Predef._
import io.gatling.http.Predef._
import scala.concurrent.duration._

class ComputerDatabase extends Simulation {

  object Search {
    // a feeder that draws its rows at random
    val feeder = csv("search.csv").random

    val search = exec(http("Home").get("/"))
      .pause(1)
      .feed(feeder)
      .exec(
        http("Search")
          .get("/computers?f=#{searchCriterion}")
          .check(jsonPath("$.items[0].id").saveAs("computerId"))
      )
      .pause(1)
      .exec(http("Select").get("/computers/#{computerId}"))
      .pause(1)
  }

  object Browse {
    def gotoPage(page: String) = exec(http(s"Page $page").get(s"/computers?p=$page")).pause(1)

    val browse = exec(gotoPage("0"), gotoPage("1"), gotoPage("2"), gotoPage("3"))
  }

  object Edit {
    val edit = tryMax(2) {
      exec(http("Form").get("/computers/new"))
        .pause(1)
        .exec(
          http("Post")
            .post("/computers")
            .formParam("name", "Beautiful Computer")
            .formParam("introduced", "2012-05-30")
            .check(status.in(200, 201))
        )
    }.exitHereIfFailed
  }

  val httpProtocol = http
    .baseUrl("http://127.0.0.1:8080")
    .acceptHeader("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8")
    .disableCaching

  val users = scenario("Users").exec(Search.search, Browse.browse)
  val admins = scenario("Admins").exec(Search.search, Browse.browse, Edit.edit)

  setUp(
    users.inject(rampUsers(10).during(10.seconds)),
    admins.inject(rampUsers(2) during (10 seconds))
  ).protocols(httpProtocol)
    .assertions(
      global.responseTime.max.lt(5000),
      global.successfulRequests.percent.gt(95)
    )
}
