/** Series of one case, sampled every 30 s, in Prometheus' notation (`5+2x10`: begins at 5 and grows by 2, ten times). */
type Series = Readonly<Record<string, string>>;

export interface AlertCase {
  /** Of the evaluation. */
  at: string;
  fires: Series;
  /** Another cause with the same alert. */
  firesToo?: Series;
  /** Labels of the alert beside its severity. */
  labels?: Record<string, string>;
  /** Series of a healthy deployment that come close. */
  silent: Series;
  /** Of cases that last for a day. */
  evaluatedEvery?: string;
}

/** A counter that counts once in 20 minutes, just before the evaluation. */
const ONCE = '0x38 1x10';
const NEVER = '0x48';

const counted = (series: string, labels: Record<string, string> = {}): AlertCase => ({
  at: '20m',
  fires: { [series]: ONCE },
  labels,
  silent: { [series]: NEVER },
});

const down = (labels: string, shown: Record<string, string>): AlertCase => ({
  at: '20m',
  fires: { [`switchyard_endpoints_down{${labels}}`]: '1x48' },
  labels: shown,
  silent: { [`switchyard_endpoints_down{${labels}}`]: '0x48' },
});

const ENDPOINT = { model: 'm', provider: 'p' };
const endpoint = (reason: string) => `model="m",provider="p",reason="${reason}",instance="1"`;

/** What makes each alert fire, and what does not. */
export const alertCases: Record<string, AlertCase> = {
  PartitionsWithoutOwner: {
    at: '5m',
    fires: { 'switchyard_partitions_owned{instance="1"}': '32x10', 'switchyard_partitions_owned{instance="2"}': '31x10' },
    silent: { 'switchyard_partitions_owned{instance="1"}': '32x10', 'switchyard_partitions_owned{instance="2"}': '32x10' },
  },
  ProcessDown: {
    at: '5m',
    fires: { 'up{job="switchyard",instance="1"}': '0x10' },
    labels: { job: 'switchyard', instance: '1' },
    silent: { 'up{job="switchyard",instance="1"}': '1x10', 'up{job="other",instance="1"}': '0x10' },
  },
  CommandsWait: {
    at: '5m',
    fires: { switchyard_oldest_command_age_seconds: '6x10' },
    silent: { switchyard_oldest_command_age_seconds: '6 0 6 0 6 0 6 0 6 0 6' },
  },
  CommandLogGrows: { at: '20m', fires: { switchyard_command_log_behind: '0+150x40' }, silent: { switchyard_command_log_behind: '5000+50x40' } },
  WorkQueueGrows: {
    at: '20m',
    fires: { 'switchyard_work_queue_depth{kind="router"}': '0+20x40' },
    labels: { kind: 'router' },
    silent: { 'switchyard_work_queue_depth{kind="router"}': '5000+5x40' },
  },
  TurnsFail: {
    at: '20m',
    fires: { 'switchyard_turns_total{outcome="failed"}': '0+2x40', 'switchyard_turns_total{outcome="completed"}': '0+10x40' },
    silent: { 'switchyard_turns_total{outcome="failed"}': '0+1x40', 'switchyard_turns_total{outcome="completed"}': '0+10x40' },
  },
  LedgerBehind: { at: '10m', fires: { switchyard_usage_backlog_age_seconds: '61x20' }, silent: { switchyard_usage_backlog_age_seconds: '59x20' } },
  UsageNotBilled: counted('switchyard_dead_letters_total{source="usage"}'),
  DeadLetters: counted('switchyard_dead_letters_total{source="command"}', { source: 'command' }),
  OwnerOfExposedKeyNotNotified: counted('switchyard_mails_total{outcome="given_up"}'),
  MailsWait: { at: '90m', fires: { switchyard_mails_waiting: '1x180' }, silent: { switchyard_mails_waiting: '1x100 0x80' } },
  RouterFileRefused: counted('switchyard_config_reloads_total{outcome="refused"}'),
  RouterFilesDiffer: {
    at: '10m',
    fires: {
      'switchyard_config_in_force_since_seconds{hash="a",instance="1"}': '1x20',
      'switchyard_config_in_force_since_seconds{hash="b",instance="2"}': '1x20',
    },
    silent: {
      'switchyard_config_in_force_since_seconds{hash="a",instance="1"}': '1x20',
      'switchyard_config_in_force_since_seconds{hash="a",instance="2"}': '1x20',
    },
  },
  WorkRedelivered: {
    at: '30m',
    fires: { 'switchyard_work_redeliveries_total{kind="router"}': '0+6x60' },
    labels: { kind: 'router' },
    silent: { 'switchyard_work_redeliveries_total{kind="router"}': '0x20 30x40' },
  },
  HostPaused: {
    at: '20m',
    fires: { switchyard_fences_total: ONCE, 'switchyard_partitions_owned{instance="1"}': '64x48' },
    silent: { switchyard_fences_total: ONCE, 'switchyard_partitions_owned{instance="1"}': '64x48', 'switchyard_partitions_owned{instance="2"}': '_x36 0x12' },
  },
  ProviderRefusesCredential: down(endpoint('credential'), { provider: 'p' }),
  ProviderLacksModel: down(endpoint('model'), ENDPOINT),
  ProviderDown: down(endpoint('outage'), ENDPOINT),
  ProviderLimitsRate: down(endpoint('rate_limit'), ENDPOINT),
  ProviderFails: {
    at: '20m',
    fires: {
      'switchyard_upstream_attempts_total{model="m",provider="p",outcome="upstream.unreachable"}': '0+3x40',
      'switchyard_upstream_attempts_total{model="m",provider="p",outcome="ok"}': '0+7x40',
    },
    labels: { provider: 'p' },
    silent: {
      'switchyard_upstream_attempts_total{model="m",provider="p",outcome="aborted"}': '0+3x40',
      'switchyard_upstream_attempts_total{model="m",provider="p",outcome="ok"}': '0+7x40',
    },
  },
  RequestsRefused: {
    at: '30m',
    fires: { 'switchyard_refusals_total{reason="no_credit"}': '0+6x60' },
    labels: { reason: 'no_credit' },
    silent: { 'switchyard_refusals_total{reason="no_credit"}': '0+1x60', 'switchyard_refusals_total{reason="rate_limited"}': '0+60x60' },
  },
  SpendingGrows: {
    at: '1500m',
    fires: { 'switchyard_cost_usd_total{model="m",provider="p"}': '0+0.05x2880 144+0.5x120' },
    labels: { model: 'm' },
    silent: { 'switchyard_cost_usd_total{model="m",provider="p"}': '0+0.2x3000' },
    evaluatedEvery: '10m',
  },
  CommandsWithoutRight: counted('switchyard_commands_refused_total'),
  CommitsRefused: counted('switchyard_commits_total{outcome="refused"}'),
  WorkRefused: {
    at: '10m',
    fires: { 'switchyard_http_requests_total{server="router",method="POST",route="/api/v1/chat/completions",status="503"}': '0+1x20' },
    labels: { server: 'router' },
    silent: { 'switchyard_http_requests_total{server="router",method="POST",route="/api/v1/chat/completions",status="429"}': '0+1x20' },
  },
  EventLoopLate: {
    at: '5m',
    fires: { 'nodejs_eventloop_lag_p99_seconds{job="switchyard",instance="1"}': '0.3x10' },
    labels: { job: 'switchyard', instance: '1' },
    silent: { 'nodejs_eventloop_lag_p99_seconds{job="switchyard",instance="1"}': '0.1x10' },
  },
  EventLoopHeld: {
    ...counted('switchyard_event_loop_held_total{work="commands"}', { work: 'commands' }),
    // A piece of work has no series before it blocks a process for the first time.
    firesToo: { 'switchyard_event_loop_held_total{work="commands",instance="1"}': '_x38 1x10' },
    silent: { 'switchyard_event_loop_held_total{work="commands"}': '1x48' },
  },
  ClockOff: { at: '5m', fires: { switchyard_clock_skew_seconds: '-6x10' }, silent: { switchyard_clock_skew_seconds: '-4x10' } },
  TelemetryDropped: counted('switchyard_telemetry_dropped_total{kind="spans"}', { kind: 'spans' }),
};
