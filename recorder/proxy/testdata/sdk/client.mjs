// Asks a service with the official client, one case a line, and prints what the client saw.
import { TypeSafeClient, choice, noul, score } from "@typesafe-ai/sdk";

const client = new TypeSafeClient({ baseURL: process.argv[2], apiKey: "planted-sdk-key-0001", retry: { initialDelayMs: 10, maxDelayMs: 20 } });

async function show(name, f) {
  let line;
  try {
    line = { name, result: await f() };
  } catch (e) {
    line = { name, error: e.constructor.name, status: e.status, message: e.message, requestId: e.requestId, body: e.body ?? e.error };
  }
  console.log(JSON.stringify(line));
}

const ask = (state) => client.systemOne({ state, questions: { q: noul("Is it?") }, model: "jev-latest" });

await show("models", () => client.models.list());
await show("three questions", () =>
  client.systemOne({
    state: { b: 1, a: { z: "Ünïcode \u2028 <b>&</b>" } },
    questions: {
      z_last: choice("Which team?", { zeta: null, alpha: { what: "Payments" }, mid: ["x"] }),
      a_first: noul("Urgent?"),
      s: score("How bad?", ["low", { what: "mid" }, "high"]),
    },
    beam: 2,
    model: "jev-latest",
  }),
);
for (const state of ["E400", "E401", "E403", "E404", "E422", "R429", "R529", "R503R503", "E500"]) {
  await show(state, () => ask(state));
}
