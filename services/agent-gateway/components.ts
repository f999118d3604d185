import { type EvaluationStore, evaluationStore } from '#shared/config/evaluation-store.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { CommandReplies } from './command-replies.ts';
import { CustomerRows } from './customers/customer-rows.ts';
import { VariableRows } from './customers/variable-rows.ts';
import { DeadLetterRows } from './deliveries/dead-letter-rows.ts';
import { DeliveryList } from './deliveries/delivery-list.ts';
import type { AgentGatewayDeps } from './deps.ts';
import { EventFeeds } from './feed/event-feeds.ts';
import { SessionLog } from './feed/session-log.ts';
import { FirstReplies } from './first-replies.ts';
import { limits, type Waits, waits } from './limits.ts';
import { OpenReaders } from './open-readers.ts';
import { type AgentBodies, agentBodies } from './plugins/bounded-bodies.ts';
import { REASONS } from './plugins/require-ready.ts';
import { ProcessedCommands } from './processed-commands.ts';
import { ReadinessGate } from './readiness.ts';
import { Deltas } from './relay/deltas.ts';
import { RunRows } from './run-rows.ts';
import { RunStepRows } from './run-step-rows.ts';
import { SessionList } from './session-list.ts';
import { TurnRecords } from './turns/turn-records.ts';
import { watchedDatabase } from './watched-database.ts';
import { DeliveryRows } from './webhooks/delivery-rows.ts';

/** What the routes share. Subscriptions and timers begin with `open`. */
export interface Components {
  waits: Waits;
  bodies: AgentBodies;
  gate: ReadinessGate;
  commandReplies: CommandReplies;
  processedCommands: ProcessedCommands;
  sessionLog: SessionLog;
  sessionList: SessionList;
  customerRows: CustomerRows;
  firstReplies: FirstReplies;
  variableRows: VariableRows;
  runRows: RunRows;
  runStepRows: RunStepRows;
  turnRecords: TurnRecords;
  deliveryRows: DeliveryRows;
  deliveryList: DeliveryList;
  deadLetterRows: DeadLetterRows;
  evaluations: EvaluationStore;
  feeds: EventFeeds;
  deltas: Deltas | null;
  polls: OpenReaders;
  streams: OpenReaders;
  open(): void;
  drain(): void;
  close(): Promise<void>;
}

export function assemble({ config, agent, bus, database, log, tracing, waits: shorter }: AgentGatewayDeps): Components {
  const times: Waits = { ...waits, ...shorter };
  const bodies = agentBodies(times);
  const closing = new SwitchyardError('service.not_ready', REASONS.draining);
  const gate = new ReadinessGate({ bus, database, bundleHash: agent.bundleHash, waits: times, log }, () => feeds.compareAll());
  const watched = watchedDatabase(database, () => gate.suspect());
  const processedCommands = new ProcessedCommands({ database: watched, log });
  const commandReplies = new CommandReplies({
    bus,
    processedCommands,
    waits: times,
    log,
    ...(tracing && { tracing }),
  });
  const sessionLog = new SessionLog(watched);
  const feeds = new EventFeeds({ bus, sessionLog, waits: times, log });
  const deltas = config.streaming ? new Deltas({ bus, feeds, waits: times, log }) : null;
  const polls = new OpenReaders('long-polls', limits.openPolls);
  const streams = new OpenReaders('event streams', limits.openStreams);
  return {
    waits: times,
    bodies,
    gate,
    commandReplies,
    processedCommands,
    sessionLog,
    customerRows: new CustomerRows(watched),
    firstReplies: new FirstReplies(watched),
    variableRows: new VariableRows(watched),
    sessionList: new SessionList(watched),
    runRows: new RunRows(watched),
    runStepRows: new RunStepRows(watched),
    turnRecords: new TurnRecords(watched),
    deliveryRows: new DeliveryRows(watched),
    deliveryList: new DeliveryList(watched),
    deadLetterRows: new DeadLetterRows(watched),
    evaluations: evaluationStore(watched),
    feeds,
    deltas,
    polls,
    streams,
    open() {
      commandReplies.open();
      feeds.open();
      gate.open();
    },
    drain() {
      gate.drain();
      polls.drain();
      streams.drain();
      for (const arriving of [bodies.keyed, bodies.unkeyed]) arriving.failAllAfter(times.stopBodyMs, closing);
    },
    async close() {
      gate.close();
      await Promise.all([commandReplies.close(), feeds.close()]);
    },
  };
}
