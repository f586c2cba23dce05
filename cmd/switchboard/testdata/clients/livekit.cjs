// LiveKit agents: the class of its OpenAI plugin that its agent sessions use, without a room.
const { initializeLogger, llm } = require("@livekit/agents");
const { realtime } = require("@livekit/agents-plugin-openai");
const { AudioFrame } = require("@livekit/rtc-node");
const { instructions, weather, report, note, pieces } = require("./protocol.cjs");

initializeLogger({ pretty: false, level: "silent" });

module.exports = ({ base, key }, log) => {
  const model = new realtime.RealtimeModel({ apiKey: key, baseURL: `${base.replace("http", "ws")}/v1`, model: "gpt-realtime-2.1" });
  const session = model.session();
  const add = async (change) => {
    const chat = session.chatCtx.copy();
    change(chat);
    await session.updateChatCtx(chat);
    session.generateReply().catch((error) => log.errors.push(`reply: ${error.message}`));
  };
  session.on("error", ({ error }) => log.errors.push(error.message));
  session.on("openai_server_event_received", (event) => event.type !== "error" && note(log, event));
  session.on("generation_created", async ({ functionStream }) => {
    for await (const call of functionStream) {
      const output = llm.FunctionCallOutput.create({ callId: call.callId, name: call.name, output: report(call.args), isError: false });
      await add((chat) => chat.insert([output]));
    }
  });
  return {
    async open() {
      await session.updateInstructions(instructions);
      await session.updateTools(new llm.ToolContext([llm.tool({ ...weather, execute: () => "" })]));
    },
    say: (content) => add((chat) => chat.addMessage({ role: "user", content })),
    speak: () => pieces((sound) => session.pushAudio(new AudioFrame(sound, 24000, 1, sound.length))),
    close: () => session.close(),
  };
};
