import { commands, isClone } from './package-folder.mjs';

/**
 * The settings of `npm start`: environment variables with their defaults. Tests compare this table with the program and docs/settings.md.
 *
 * @type {readonly { title: string, settings: readonly { name: string, default: string, meaning: string }[] }[]}
 */
export const settingGroups = [
  {
    title: 'Addresses and data',
    settings: [
      { name: 'ROUTER_PORT', default: '3000', meaning: 'port of the model router; 0 takes any free one' },
      { name: 'AGENT_PORT', default: '8080', meaning: 'port of the agent server; 0 takes any free one' },
      { name: 'HOST', default: '127.0.0.1', meaning: 'address that both ports listen on; 0.0.0.0 opens them to the network' },
      { name: 'DATA_DIR', default: './data', meaning: 'folder of the database and the generated keys; one process at a time can use it' },
    ],
  },
  {
    title: 'What it runs',
    settings: [
      { name: 'MANIFEST', default: 'examples/acme-support/manifest.yaml', meaning: 'the agent to host' },
      {
        name: 'DOCUMENTS',
        default: '`documents` beside the manifest',
        meaning: 'folder of the documents that the manifest names; without one they are those of its platform',
      },
      {
        name: 'SECRETS_DIR',
        default: 'none',
        meaning:
          'folder of the secret bundles that the manifest names, each a file `<secret_name>.env` or a folder with a file per variable; the environment wins',
      },
      {
        name: 'ROUTER_CONFIG',
        default: 'built in',
        meaning: 'YAML or JSON file of providers, models and keys; it replaces the configuration made from the settings below',
      },
    ],
  },
  {
    title: 'Which model answers',
    settings: [
      {
        name: 'OPENAI_API_KEY',
        default: 'none',
        meaning: 'API key of the upstream; without it and the other settings of this group the built-in scripted model answers, offline',
      },
      {
        name: 'OPENAI_BASE_URL',
        default: 'https://api.openai.com/v1',
        meaning: 'address of any upstream with the chat completions API; without OPENAI_API_KEY requests carry no credential (Ollama, vLLM, llama.cpp)',
      },
      {
        name: 'OPENAI_PROVIDER_NAME',
        default: 'host of OPENAI_BASE_URL',
        meaning: "prefix of its models' ids, in lower case; OpenAI for the default address",
      },
      {
        name: 'OPENAI_MODELS',
        default: 'those of OpenAI',
        meaning:
          'models of the upstream, separated by commas; the sample agent uses the first one that chats; names with `embed` give vectors. The default is those of OpenAI in catalogue/models.json; with another OPENAI_BASE_URL it is the list that its GET /models returns',
      },
      {
        name: 'ANTHROPIC_API_KEY',
        default: 'none',
        meaning: 'API key of Anthropic; its models in catalogue/models.json are served beside those of the other vendors',
      },
      {
        name: 'GEMINI_API_KEY',
        default: 'none',
        meaning: 'API key of Google AI Studio; its models in catalogue/models.json are served beside those of the other vendors',
      },
      { name: 'GROQ_API_KEY', default: 'none', meaning: 'API key of Groq; its models in catalogue/models.json are served beside those of the other vendors' },
      {
        name: 'TOGETHER_API_KEY',
        default: 'none',
        meaning: 'API key of Together AI; its models in catalogue/models.json are served beside those of the other vendors',
      },
      {
        name: 'MISTRAL_API_KEY',
        default: 'none',
        meaning: 'API key of Mistral; its models in catalogue/models.json are served beside those of the other vendors',
      },
      {
        name: 'DEEPSEEK_API_KEY',
        default: 'none',
        meaning: 'API key of DeepSeek; its models in catalogue/models.json are served beside those of the other vendors',
      },
      { name: 'XAI_API_KEY', default: 'none', meaning: 'API key of xAI; its models in catalogue/models.json are served beside those of the other vendors' },
      { name: 'ANTHROPIC_BASE_URL', default: "Anthropic's", meaning: 'address in place of it, such as that of a proxy, without `/v1`' },
      { name: 'GEMINI_BASE_URL', default: "Google AI Studio's", meaning: 'address in place of it, such as that of a proxy, without the version of the API' },
      { name: 'GROQ_BASE_URL', default: "Groq's", meaning: 'address in place of it, such as that of a proxy' },
      { name: 'TOGETHER_BASE_URL', default: "Together AI's", meaning: 'address in place of it, such as that of a proxy' },
      { name: 'MISTRAL_BASE_URL', default: "Mistral's", meaning: 'address in place of it, such as that of a proxy' },
      { name: 'DEEPSEEK_BASE_URL', default: "DeepSeek's", meaning: 'address in place of it, such as that of a proxy' },
      { name: 'XAI_BASE_URL', default: "xAI's", meaning: 'address in place of it, such as that of a proxy' },
      {
        name: 'ROUTER_PRICES',
        default: 'none',
        meaning:
          'YAML or JSON file of prices of these models, by id, in place of those in catalogue/models.json; keys with a credit limit can call only models with prices',
      },
      {
        name: 'SCRIPTED_WORDS_PER_SECOND',
        default: '60',
        meaning: 'speed of the scripted model in streamed answers; 0: as fast as possible. Whole answers have no delay',
      },
    ],
  },
  {
    title: 'Keys',
    settings: [
      {
        name: 'AGENT_API_KEY',
        default: 'generated',
        meaning:
          'key that callers of the agent server send; generated at the first start, into keys.json in DATA_DIR, for the sample agent and where ROUTER_CONFIG references it, not for another MANIFEST',
      },
      {
        name: 'ROUTER_API_KEY',
        default: 'generated',
        meaning:
          'key that callers of the model router send; generated at the first start, into keys.json in DATA_DIR, without ROUTER_CONFIG or where that references it',
      },
      {
        name: 'ROUTER_MANAGEMENT_KEY',
        default: 'generated',
        meaning: 'key that makes, lists and changes keys of the model router, and calls no model; generated as ROUTER_API_KEY',
      },
      { name: 'HOUSE_SECRET', default: 'generated', meaning: 'secret that signs the ids that Switchyard issues; generated at the first start, never shown' },
      {
        name: 'PLATFORM_PUBLIC_KEY',
        default: 'derived',
        meaning:
          'public half of the key pair with which documents of agents are published and read, agents registered, and traces sent to the router; by default derived from HOUSE_SECRET',
      },
      { name: 'PLATFORM_SECRET_KEY', default: 'derived', meaning: 'secret half of that pair; by default derived from HOUSE_SECRET' },
    ],
  },
  {
    title: 'Mail',
    settings: [
      {
        name: 'SMTP_URL',
        default: 'none',
        meaning:
          'mail server for notices of exposed keys: smtp://host:587 or smtps://host:465, with user:password@ before the host if it wants a login. Without it mails wait',
      },
      { name: 'MAIL_FROM', default: 'none', meaning: 'sender of those mails: an address, or a name and the address in angle brackets; needed with SMTP_URL' },
    ],
  },
  {
    title: 'Callbacks',
    settings: [
      {
        name: 'REQUIRE_CALLBACK_ALLOWLIST',
        default: 'false',
        meaning: "true: a run may name a callback URL only if its routine lists allowed hosts. Callbacks carry the agent's key",
      },
      {
        name: 'EVENT_WEBHOOK_URL',
        default: 'none',
        meaning: "address to which the events of all new sessions are posted, one request each, with the agent's key",
      },
      {
        name: 'EVENT_WEBHOOK_KINDS',
        default: 'all',
        meaning: 'kinds of events that are posted to EVENT_WEBHOOK_URL, separated by commas: user_message, preamble, assistant_message, status, tool, custom',
      },
      {
        name: 'OUTBOUND_ALLOW_HOSTS',
        default: 'none',
        meaning: 'exact host:port pairs, separated by commas, to which callbacks, events and the fetching of pictures may use http and private addresses',
      },
      {
        name: 'AGENT_PUBLIC_URL',
        default: 'none',
        meaning: 'address at which the agent server is reached; a manifest with `endpoint: true` needs it, and registers it with its platform each minute',
      },
      {
        name: 'PUBLIC_BASE_URL',
        default: 'none',
        meaning: 'address at which clients reach this deployment; a manifest with another `platform.base_url` has its documents and model calls there',
      },
    ],
  },
  {
    title: 'How it behaves',
    settings: [
      {
        name: 'STREAMING',
        default: 'false',
        meaning: "true: replies of the agent are streamed token by token; false: sent as whole messages. It does not affect the router's streams",
      },
      {
        name: 'COALESCE_MS',
        default: '150',
        meaning: 'a message within this many milliseconds of the previous one joins its turn; a later one cancels that turn',
      },
      { name: 'TURN_TIMEOUT_SECONDS', default: '180', meaning: 'longest duration of one turn of the agent' },
      { name: 'ROUTER_MAX_TOKENS', default: '100000', meaning: "max_tokens of the agent's model calls; less where the endpoint's limit is lower" },
      {
        name: 'EVAL_NODE_PARALLELISM',
        default: '50',
        meaning: "model calls at once when the agent's routines and policies are evaluated after a start; 1: one after the other",
      },
      {
        name: 'LLM_PROVIDER_ORDER',
        default: 'none',
        meaning: "slugs of providers, separated by commas, to try first for the agent's model calls, in this order; other providers are tried after them",
      },
      { name: 'AUTONOMOUS_DEFAULT_TIMEOUT_SECONDS', default: '120', meaning: 'timeout of a run whose routine sets none' },
      { name: 'AUTONOMOUS_MAX_TIMEOUT_SECONDS', default: '600', meaning: 'largest timeout that a routine may set' },
      { name: 'AUTONOMOUS_CALLBACK_MAX_RETRIES', default: '5', meaning: 'attempts of one callback, or of one event, in all, with growing pauses between them' },
      {
        name: 'RUN_RETENTION_DAYS',
        default: '30',
        meaning:
          'how long settled runs, deliveries of webhooks, replies to writes with an idempotency key, rows of deleted sessions, settled effects and dead letters are kept; a sweep once a day deletes older ones',
      },
      { name: 'STORE_GC_DELAY_SECONDS', default: '120', meaning: 'time from the start to the first sweep' },
      {
        name: 'SHUTDOWN_DRAIN_TIMEOUT_SECONDS',
        default: '120',
        meaning:
          'how long a stop (Ctrl-C, SIGTERM) waits for requests in flight and for callbacks whose retry is due within that time; a second signal, at least a second later, ends the process at once',
      },
      {
        name: 'LOG_LEVEL',
        default: 'of the manifest',
        meaning: "trace, debug, info, warn (or WARNING), error, fatal (or CRITICAL) or silent; without it the manifest's `runtime.log_level`, else info",
      },
      { name: 'LOG_FORMAT', default: 'by terminal', meaning: 'text or json; by default text if the log goes to a terminal, else json' },
      {
        name: 'MANAGEMENT_PORT',
        default: 'none',
        meaning: 'port of `/live`, `/ready` and `/metrics`, separate from the public ports; 0 takes any free one',
      },
      { name: 'MANAGEMENT_HOST', default: '127.0.0.1', meaning: 'address that the management port listens on' },
      {
        name: 'OTEL_EXPORTER_OTLP_ENDPOINT',
        default: 'none',
        meaning:
          'OpenTelemetry collector that receives traces by OTLP over HTTP, such as http://localhost:4318; without it and without a backend in the manifest no traces are recorded',
      },
      {
        name: 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT',
        default: 'none',
        meaning: 'the same as a full URL, path included',
      },
      {
        name: 'OTEL_EXPORTER_OTLP_HEADERS',
        default: 'none',
        meaning: 'headers sent with traces: name=value pairs, separated by commas, values percent-encoded',
      },
      {
        name: 'OTEL_SERVICE_NAME',
        default: '`standalone`',
        meaning: 'name of this process in traces',
      },
      {
        name: 'OTEL_TRACES_SAMPLER_ARG',
        default: '1',
        meaning: 'fraction, from 0 to 1, of the traces begun here that is recorded',
      },
      {
        name: 'TRACE_CONTENT',
        default: 'off',
        meaning: 'what traces contain of messages: off, redacted (roles and lengths) or full',
      },
      {
        name: 'TRACES_LOCAL',
        default: 'true',
        meaning:
          'true: the last traces are kept in memory (32 MiB) and shown at /traces of the agent server and /api/v1/traces of the router, without a collector',
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

const folder = isClone ? 'the folder of this clone' : 'the working folder';
const withHelp = `${commands.start}${commands.separator} --help`;
const usage = `Usage: ${commands.start.padEnd(withHelp.length)}    start Switchyard in one process
       ${withHelp}    print this

Starts the model router and the agent server on an embedded database. It needs
only Node${isClone ? ' and npm. The first start installs packages and builds' : ''}.

Settings are environment variables, as in: ROUTER_PORT=3001 ${commands.start}
They may also be in a file .env in ${folder}, one NAME=value per
line. A variable of the environment overrules the file.
Relative paths start at ${folder}.`;

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
