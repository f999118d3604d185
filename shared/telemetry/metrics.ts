import { refusalReasons } from '../errors/refusal-reason.ts';
import { workKinds } from '../work-kinds.ts';

/**
 * Every metric at `/metrics`. A test compares this table with docs/operations.md.
 *
 * Labels are closed sets: a list of all values, or null where the configuration or the routes define them. Never ids or foreign text: each
 * combination is a series that is kept until the process ends.
 */
export const metricTable = {
  httpRequests: counter('switchyard_http_requests_total', 'Requests that were answered or whose client disconnected, without probes.', {
    server: ['router', 'agent'],
    method: null,
    route: null,
    status: null,
  }),
  httpSeconds: histogram(
    'switchyard_http_request_duration_seconds',
    'From the head of a request to the end of its response, of streams and long-polls too.',
    { server: ['router', 'agent'], route: null },
    [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300],
  ),
  streamsOpen: gauge('switchyard_streams_open', 'Open streams of the router, event streams and long-polls.', {
    kind: ['router_stream', 'agent_stream', 'agent_long_poll'],
  }),
  firstTokenSeconds: histogram(
    'switchyard_first_token_seconds',
    'From the moment a streamed call is put on the bus to the first content sent to its client.',
    {},
    [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60],
  ),
  routerCalls: counter('switchyard_router_calls_total', 'Ended model calls, by the endpoint that was asked last.', {
    kind: ['client', 'actor'],
    model: null,
    provider: null,
    outcome: ['completed', 'failed', 'cancelled', 'abandoned'],
  }),
  tokens: counter(
    'switchyard_tokens_total',
    'Tokens of ended calls, as their usage records have them. `cached` and `cache_write` are part of the prompt, `reasoning` of the completion.',
    {
      model: null,
      provider: null,
      kind: ['prompt', 'completion', 'cached', 'cache_write', 'reasoning'],
    },
  ),
  costUsd: counter('switchyard_cost_usd_total', 'What callers pay for ended calls, in US dollars. Calls of endpoints without prices add nothing.', {
    model: null,
    provider: null,
  }),
  refusals: counter('switchyard_refusals_total', 'Requests and model calls of the router that were refused before a provider was asked.', {
    reason: refusalReasons,
  }),
  usageAppends: counter('switchyard_usage_appends_total', 'Appends of usage records to the usage log; a failed one is repeated.', {
    outcome: ['stored', 'failed'],
  }),
  reservations: counter(
    'switchyard_reservations_total',
    'Calls of keys with a credit limit: `refused` for lack of credit, `unavailable` without the database.',
    {
      outcome: ['reserved', 'refused', 'unavailable'],
    },
  ),
  ratesLocal: counter('switchyard_rates_counted_locally_total', 'Calls of keys with rate limits that one process counted by itself, without the cache.', {}),
  upstreamAttempts: counter('switchyard_upstream_attempts_total', 'Attempts at a provider: `ok`, `aborted`, `outrun`, or the code of the error.', {
    model: null,
    provider: null,
    outcome: null,
  }),
  upstreamSeconds: histogram(
    'switchyard_upstream_attempt_duration_seconds',
    'From the beginning of an attempt at a provider to its end.',
    { provider: null },
    [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300],
  ),
  upstreamFirstPartSeconds: histogram(
    'switchyard_upstream_first_part_seconds',
    'From the beginning of an attempt at a provider to its first content.',
    { provider: null },
    [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60],
  ),
  hedges: counter('switchyard_hedges_total', 'Calls with two attempts beside each other, by the one that answered first.', {
    model: null,
    outcome: ['first', 'second', 'neither'],
  }),
  endpointsDown: gauge('switchyard_endpoints_down', 'Endpoints that this worker tries last, by what it has seen of them. Absent: none.', {
    model: null,
    provider: null,
    reason: ['outage', 'rate_limit', 'credential', 'model'],
  }),
  turns: counter('switchyard_turns_total', 'Ended turns, counted after the commit.', { outcome: ['completed', 'failed', 'cancelled'] }),
  turnSeconds: histogram('switchyard_turn_duration_seconds', 'From the beginning of a turn to its end.', {}, [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300]),
  replyChecks: counter('switchyard_reply_checks_total', 'Replies that were checked for policies of high criticality.', {
    outcome: ['followed', 'missed', 'unchecked'],
  }),
  runs: counter('switchyard_runs_total', 'Settled runs: `succeeded`, or the code of their error.', { outcome: null }),
  runSeconds: histogram('switchyard_run_duration_seconds', 'From the beginning of a run to its end.', {}, [0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600]),
  commits: counter('switchyard_commits_total', 'Statements that store the results of commands, by outcome.', {
    outcome: ['committed', 'repeated', 'refused', 'unknown'],
  }),
  commitSeconds: histogram(
    'switchyard_commit_duration_seconds',
    'Duration of one such statement.',
    {},
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5],
  ),
  commitCommands: histogram('switchyard_commit_batch_commands', 'Commands, timers and starts in one batch.', {}, [1, 2, 4, 8, 16, 32, 64, 128]),
  commandsRefused: counter('switchyard_commands_refused_total', 'Commands that were skipped because they have no valid tag.', {}),
  fences: counter('switchyard_fences_total', 'Partitions that a host found owned by another one, at a commit or behind a pause.', {}),
  partitionsOwned: gauge('switchyard_partitions_owned', 'Partitions that this host owns.', {}),
  commandsWaiting: gauge('switchyard_commands_waiting', 'Commands, timers and starts of this host’s partitions that are read and not yet applied.', {}),
  oldestCommandSeconds: gauge('switchyard_oldest_command_age_seconds', 'Waiting time of the oldest of them; 0 if there is none.', {}),
  logBehind: gauge('switchyard_command_log_behind', 'Positions in the command log between the lowest cursor of all partitions and its end.', {}),
  effectsOpen: gauge('switchyard_effects_open', 'Model calls, tool calls and deliveries that this host’s turns and runs wait for.', {}),
  queueDepth: gauge('switchyard_work_queue_depth', 'Work items that are stored and not settled, those in flight included.', {
    kind: workKinds,
  }),
  redeliveries: counter('switchyard_work_redeliveries_total', 'Work items that were delivered for the second time or a later one.', {
    kind: workKinds,
  }),
  leasesLost: counter('switchyard_work_leases_lost_total', 'Work items whose worker lost the lease before it had a whole result.', { kind: workKinds }),
  usageRecords: counter('switchyard_usage_records_total', 'Usage records of ended calls that the ledger has taken from the log.', {
    outcome: ['written', 'repeated', 'unusable'],
  }),
  usageBacklog: gauge('switchyard_usage_backlog', 'Messages of usage records that are in the log and not in the ledger yet.', {}),
  usageBacklogSeconds: gauge('switchyard_usage_backlog_age_seconds', 'Waiting time of the oldest of them; 0 if there is none.', {}),
  reservationsLapsed: counter('switchyard_reservations_lapsed_total', 'Reservations of calls that ended without a usage record.', {}),
  interimRecordsBilled: counter('switchyard_interim_records_billed_total', 'Calls that no worker has ended and that are billed by their interim records.', {}),
  mails: counter('switchyard_mails_total', 'Attempts to send a mail to the owner of an exposed key: `failed` ones are repeated.', {
    outcome: ['sent', 'failed', 'given_up'],
  }),
  mailsWaiting: gauge('switchyard_mails_waiting', 'Mails that are neither sent nor given up.', {}),
  callbackAttempts: counter('switchyard_callback_attempts_total', 'Posts of callbacks.', { outcome: ['delivered', 'failed', 'exhausted'] }),
  callbacksPostponed: counter('switchyard_callbacks_postponed_total', 'Callbacks that were due and not posted, without using up an attempt.', {
    reason: ['silent', 'busy'],
  }),
  eventAttempts: counter('switchyard_event_attempts_total', 'Posts of events to event webhooks.', { outcome: ['delivered', 'failed'] }),
  eventsPostponed: counter('switchyard_events_postponed_total', 'Events that were due and not posted, without using up an attempt.', {
    reason: ['silent', 'busy'],
  }),
  toolCalls: counter('switchyard_tool_calls_total', 'Ended tool calls: a result, an error of the tool, or the reason why there is neither.', {
    outcome: ['result', 'error', 'unreachable', 'auth_failed', 'timeout', 'refused', 'outcome_unknown'],
  }),
  toolSeconds: histogram(
    'switchyard_tool_call_duration_seconds',
    'From the beginning of a tool call to its outcome, retries included.',
    {},
    [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300],
  ),
  searches: counter('switchyard_searches_total', 'Ended searches of turns: documents, none, or the reason why the turn replies without.', {
    outcome: ['found', 'empty', 'timeout', 'unreachable', 'auth_failed', 'refused', 'no_embedding'],
  }),
  searchQueries: counter('switchyard_search_queries_total', 'Queries that models were to make for searches by meaning.', {
    outcome: ['rewritten', 'malformed', 'unavailable'],
  }),
  likeness: counter('switchyard_likeness_total', 'Turns of agents with vectors of their texts, by what decided which texts a message is most like.', {
    outcome: ['vectors', 'malformed', 'unavailable'],
  }),
  deadLetters: counter('switchyard_dead_letters_total', 'Commands, deliveries, calls and usage records that were given up and kept for an operator.', {
    source: ['command', 'delivery', 'event', 'tool', 'call', 'usage'],
  }),
  clockSkewSeconds: gauge('switchyard_clock_skew_seconds', 'Clock of this process minus the clock of the database.', {}),
  loopHeld: counter('switchyard_event_loop_held_total', 'Ticks of the event loop that took more than a second of CPU, by the work that took longest.', {
    work: null,
  }),
  configReloads: counter('switchyard_config_reloads_total', 'Readings of the changed router file, or on SIGHUP.', {
    outcome: ['applied', 'unchanged', 'refused'],
  }),
  configInForceSince: gauge('switchyard_config_in_force_since_seconds', 'Unix time since when the configuration of this hash is in force.', { hash: null }),
  telemetryDropped: counter(
    'switchyard_telemetry_dropped_total',
    'Log lines, spans, and batches of clients’ spans that were dropped because their receiver was slow or unreachable.',
    { kind: ['log_lines', 'spans', 'client_batches'] },
  ),
} as const;

type Table = typeof metricTable;
export type MetricKey = keyof Table;
type KeysOf<Type extends 'counter' | 'gauge' | 'histogram'> = { [Key in MetricKey]: Table[Key]['type'] extends Type ? Key : never }[MetricKey];
export type CounterKey = KeysOf<'counter'>;
export type GaugeKey = KeysOf<'gauge'>;
export type HistogramKey = KeysOf<'histogram'>;

type LabelsOf<Key extends MetricKey> = {
  readonly [Label in keyof Table[Key]['labels']]: Table[Key]['labels'][Label] extends readonly (infer Value extends string)[] ? Value : string;
};
export interface Sample<Key extends MetricKey> {
  labels: LabelsOf<Key>;
  value: number;
}

/** The metrics port. No method throws or waits; each costs a look-up and an addition. */
export interface Metrics {
  add<Key extends CounterKey>(key: Key, labels: LabelsOf<Key>, count?: number): void;
  /** `by` may be negative. */
  move<Key extends GaugeKey>(key: Key, labels: LabelsOf<Key>, by: number): void;
  observe<Key extends HistogramKey>(key: Key, labels: LabelsOf<Key>, value: number): void;
  /**
   * Registers a gauge that is read at each scrape: `read` must be cheap and bounded. Left out of a scrape when it throws or takes over a second.
   * @returns unregisters it
   */
  watch<Key extends GaugeKey>(key: Key, read: () => readonly Sample<Key>[] | Promise<readonly Sample<Key>[]>): () => void;
}

/** For tests and tools. */
export const noMetrics: Metrics = { add: () => {}, move: () => {}, observe: () => {}, watch: () => () => {} };

type Labels = Record<string, readonly string[] | null>;

function counter<const Given extends Labels>(name: string, help: string, labels: Given) {
  return { type: 'counter' as const, name, help, labels };
}

function gauge<const Given extends Labels>(name: string, help: string, labels: Given) {
  return { type: 'gauge' as const, name, help, labels };
}

function histogram<const Given extends Labels>(name: string, help: string, labels: Given, buckets: readonly number[]) {
  return { type: 'histogram' as const, name, help, labels, buckets };
}
