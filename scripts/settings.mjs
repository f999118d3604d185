/**
 * The settings of `npm start`: environment variables with their defaults. Tests compare this table with the program and the README.
 *
 * @type {readonly { title: string, settings: readonly { name: string, default: string, meaning: string }[] }[]}
 */
export const settingGroups = [
  {
    title: 'Where it listens and keeps its data',
    settings: [
      { name: 'ROUTER_PORT', default: '3000', meaning: 'port of the model router; 0 takes any free one' },
      { name: 'AGENT_PORT', default: '8080', meaning: 'port of the agent server; 0 takes any free one' },
      { name: 'HOST', default: '127.0.0.1', meaning: 'address that both listen on; 0.0.0.0 opens them to the network' },
      { name: 'DATA_DIR', default: './data', meaning: 'folder of the database and the generated keys; one process at a time' },
    ],
  },
  {
    title: 'What it runs',
    settings: [
      { name: 'MANIFEST', default: 'examples/acme-support/manifest.yaml', meaning: 'the agent to host' },
      { name: 'DOCUMENTS', default: '`documents` beside the manifest', meaning: 'folder of the documents that the manifest names' },
      {
        name: 'ROUTER_CONFIG',
        default: 'built in',
        meaning: 'YAML or JSON file of providers, models and keys, instead of the one made from the settings below',
      },
    ],
  },
  {
    title: 'Which model answers',
    settings: [
      {
        name: 'OPENAI_API_KEY',
        default: 'none',
        meaning: 'key of the upstream; without it and without OPENAI_BASE_URL the built-in scripted model answers, offline',
      },
      {
        name: 'OPENAI_BASE_URL',
        default: 'https://api.openai.com/v1',
        meaning: 'any upstream that speaks the chat completions API; without OPENAI_API_KEY requests carry no credential (Ollama, vLLM, llama.cpp)',
      },
      {
        name: 'OPENAI_PROVIDER_NAME',
        default: 'host of OPENAI_BASE_URL',
        meaning: 'what ids of its models begin with, in lower case; OpenAI for the default address',
      },
      {
        name: 'OPENAI_MODELS',
        default: 'gpt-5-mini,gpt-5,gpt-4o-mini,gpt-4o',
        meaning:
          'models of the upstream, separated by commas; the first one answers the sample agent. Of another OPENAI_BASE_URL the default is what its GET /models lists',
      },
      {
        name: 'SCRIPTED_WORDS_PER_SECOND',
        default: '60',
        meaning: 'pace of the scripted model in streamed answers; 0: as fast as it can. Whole answers are never paced',
      },
    ],
  },
  {
    title: 'Keys',
    settings: [
      { name: 'AGENT_API_KEY', default: 'generated', meaning: 'what callers of the agent server present; generated once, into keys.json in DATA_DIR' },
      { name: 'ROUTER_API_KEY', default: 'generated', meaning: 'what callers of the model router present; generated likewise' },
      { name: 'HOUSE_SECRET', default: 'generated', meaning: 'signs the ids that Switchyard mints; generated likewise, never shown' },
      { name: 'PLATFORM_PUBLIC_KEY', default: 'derived', meaning: "the manifest's platform key; derived from HOUSE_SECRET" },
      { name: 'PLATFORM_SECRET_KEY', default: 'derived', meaning: 'its secret half; derived from HOUSE_SECRET' },
    ],
  },
  {
    title: 'Whom it calls back',
    settings: [
      {
        name: 'REQUIRE_CALLBACK_ALLOWLIST',
        default: 'false',
        meaning: "true: runs of a routine without a list of allowed hosts can't have a callback. Callbacks carry the agent's key",
      },
      {
        name: 'OUTBOUND_ALLOW_HOSTS',
        default: 'none',
        meaning: 'exact host:port pairs, separated by commas, that may be called back by http and at private addresses',
      },
      {
        name: 'PUBLIC_BASE_URL',
        default: 'none',
        meaning: 'where this deployment is reached from outside; a manifest whose `platform.base_url` is another address is refused',
      },
    ],
  },
  {
    title: 'How it behaves',
    settings: [
      {
        name: 'STREAMING',
        default: 'false',
        meaning: 'true: chat replies of the agent come token by token; false: as whole messages. Streams of the router do not depend on it',
      },
      { name: 'COALESCE_MS', default: '150', meaning: 'a message within this many milliseconds of the one before joins its turn; a later one cancels it' },
      { name: 'TURN_TIMEOUT_SECONDS', default: '180', meaning: 'longest time that one turn of the agent may take' },
      { name: 'ROUTER_MAX_TOKENS', default: '100000', meaning: "most tokens that one of the agent's model calls may ask for" },
      { name: 'AUTONOMOUS_DEFAULT_TIMEOUT_SECONDS', default: '120', meaning: 'how long a run may take whose routine does not say' },
      { name: 'AUTONOMOUS_MAX_TIMEOUT_SECONDS', default: '600', meaning: 'the most that a routine may say' },
      { name: 'AUTONOMOUS_CALLBACK_MAX_RETRIES', default: '5', meaning: 'attempts of one callback in all, with pauses that grow' },
      {
        name: 'SHUTDOWN_DRAIN_TIMEOUT_SECONDS',
        default: '120',
        meaning:
          'how long a stop (Ctrl-C, SIGTERM) waits for what is in flight, and for callbacks whose retry is due by then; a second one, a second later or more, does not wait',
      },
      {
        name: 'LOG_LEVEL',
        default: 'of the manifest',
        meaning: "trace, debug, info, warn (or WARNING), error, fatal (or CRITICAL) or silent; without it the manifest's `runtime.log_level`, else info",
      },
      { name: 'LOG_FORMAT', default: 'by terminal', meaning: 'text for people or json for programs; text where the log goes to a terminal, else json' },
      {
        name: 'MANAGEMENT_PORT',
        default: 'none',
        meaning: 'port of `/live`, `/ready` and `/metrics` for those who run it, apart from the public ones; 0 takes any free one',
      },
      { name: 'MANAGEMENT_HOST', default: '127.0.0.1', meaning: 'address that it listens on' },
      {
        name: 'OTEL_EXPORTER_OTLP_ENDPOINT',
        default: 'none',
        meaning:
          'OpenTelemetry collector, as in http://localhost:4318, that traces go to by OTLP over HTTP; without one, and without a backend in the manifest, none are made',
      },
      {
        name: 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT',
        default: 'none',
        meaning: 'the same as a whole address, path included',
      },
      {
        name: 'OTEL_EXPORTER_OTLP_HEADERS',
        default: 'none',
        meaning: 'name=value pairs, separated by commas and percent-encoded, that are sent with traces',
      },
      {
        name: 'OTEL_SERVICE_NAME',
        default: '`standalone`',
        meaning: 'name of this process in traces',
      },
      {
        name: 'OTEL_TRACES_SAMPLER_ARG',
        default: '1',
        meaning: 'part, from 0 to 1, of the traces beginning here that is recorded',
      },
      {
        name: 'TRACE_CONTENT',
        default: 'off',
        meaning: 'what traces show of messages: off, redacted (who said how much) or full',
      },
    ],
  },
];

const WIDTH = 80;
const INDENT = 6;

/** Output of `npm start -- --help`: plain text in at most 80 columns. */
export function helpText() {
  const groups = settingGroups.map(({ title, settings }) => [`${title}:`, ...settings.map(settingText)].join('\n'));
  return `${usage}\n\n${groups.join('\n\n')}\n`;
}

const usage = `Usage: npm start              start Switchyard in one process
       npm start -- --help    print this

Starts the model router and the agent server on an embedded database. Needs Node
and npm only; the first start installs packages and builds.

Settings are environment variables, as in: ROUTER_PORT=3001 npm start
They may also stand in a file .env in the folder of this clone, one NAME=value a
line; what the environment has wins.
Relative paths are taken from the folder of this clone.`;

/** @param {{ name: string, default: string, meaning: string }} setting */
function settingText({ name, default: value, meaning }) {
  return [`  ${name} (default: ${value})`, ...wrap(meaning, WIDTH - INDENT).map((line) => ' '.repeat(INDENT) + line)].join('\n');
}

/** @param {string} text @param {number} width */
function wrap(text, width) {
  /** @type {string[]} */
  const lines = [];
  for (const word of text.split(' ')) {
    const last = lines.at(-1);
    if (last === undefined || last.length + 1 + word.length > width) lines.push(word);
    else lines[lines.length - 1] = `${last} ${word}`;
  }
  return lines;
}
