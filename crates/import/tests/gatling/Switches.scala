import io.gatling.core.Predef._
import io.gatling.http.Predef._
import scala.concurrent.duration._

class Switches extends Simulation {
  val httpConf = http.baseUrl("http://127.0.0.1:8080").shareConnections

  val role = exec(_.set("role", "admin")).exec { session => session.set("other", 1) }

  val scn = scenario("switches")
    .exec(role)
    .randomSwitch(
      60.0 -> exec(http("often").get("/switch")),
      40.0 -> exec(http("seldom").get("/switch"))
    )
    .uniformRandomSwitch(exec(http("one").get("/uniform")), exec(http("two").get("/uniform")))
    .roundRobinSwitch(exec(http("first").get("/robin")), exec(http("second").get("/robin")))
    .doIf("#{role.exists()}") { exec(http("known").get("/known")) }
    .doIfEquals("#{role}", "admin") {
      exec(http("admin").get("/admin"))
    }
    .doIfEqualsOrElse("#{role}", "guest") { exec(http("guest").get("/guest")) } { exec(http("member").get("/member")) }
    .doSwitch("#{role}")(
      "guest" -> exec(http("as guest").get("/as/guest")),
      "admin" -> exec(http("as admin").get("/as/admin"))
    )

  setUp(scn.inject(
    incrementConcurrentUsers(5).times(3).eachLevelLasting(10.seconds).separatedByRampsLasting(5.seconds).startingFrom(10)
  )).protocols(httpConf)
}
