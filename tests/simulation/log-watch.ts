import type { CommitPlan } from '../../actors/runtime/apply/commit-plan.ts';
import type { DeletedEvents } from '../../actors/runtime/apply/commit-rows.ts';
import type { ModelTables, Row } from './model-rows.ts';
import { withheldTextIn } from './moderation-rules.ts';
import type { Scheduler } from './scheduler.ts';

type Range = Pick<DeletedEvents, 'sessionId' | 'fromOffset' | 'toOffset'>;

/** Checks deletions of events while they are executed, and prompts while they are published. */
export class LogWatch {
  readonly #scheduler: Scheduler;
  readonly #tables: ModelTables;
  readonly #breach: (rule: string, what: string) => void;
  readonly #ranges: Range[] = [];
  /** By session and offset, in simulated time. */
  readonly #deletedAtMs = new Map<string, number>();
  readonly counts = { eventsDeleted: 0, eventsPatched: 0 };

  constructor(scheduler: Scheduler, tables: ModelTables, breach: (rule: string, what: string) => void) {
    this.#scheduler = scheduler;
    this.#tables = tables;
    this.#breach = breach;
  }

  /** Before the commit's execution. @returns for after it, with the partitions that it stored */
  begin({ deletedEvents, changedEvents }: CommitPlan): (owned: ReadonlySet<number>) => void {
    if (deletedEvents.length + changedEvents.length === 0) return () => {};
    const problems = deletedEvents.map((range) => ({ partition: range.partition, problem: this.#problemOf(range) }));
    return (owned) => {
      for (const { partition, problem } of problems) if (owned.has(partition) && problem !== null) this.#breach('deletion', problem);
      for (const range of deletedEvents) if (owned.has(range.partition)) this.#deleted(range);
      this.counts.eventsPatched += changedEvents.filter(({ partition }) => owned.has(partition)).length;
    };
  }

  /** Null: the event was not deleted for so long when the request began. */
  staleAt(sessionId: string, offset: number, beginAtMs: number): number | null {
    const atMs = this.#deletedAtMs.get(`${sessionId} ${offset}`);
    return atMs === undefined || atMs >= beginAtMs ? null : beginAtMs - atMs;
  }

  /** A turn's call that is open when it is published was opened after every deletion. No model sees a text that moderation has not passed. */
  prompted(effectId: string, body: string): void {
    const [effect] = this.#tables.effects.get(effectId) ?? [];
    if (effect === undefined || effect['kind'] === 'moderation') return;
    const withheld = withheldTextIn(this.#tables, effect['session_id'] as string, body);
    if (withheld !== null) this.#breach('prompt', `${effectId} has the text of ${withheld}`);
    if (effect['state'] !== 'open') return;
    const { request } = JSON.parse(body) as { request?: { messages: { content: unknown }[] } };
    const contents = new Set(request?.messages.map(({ content }) => content));
    for (const row of this.#tables.events.get(effect['session_id'] as string)?.values() ?? []) {
      if (row['deleted_at'] === null) continue;
      const { text } = JSON.parse(row['body'] as string) as { text?: string };
      if (text !== undefined && contents.has(text)) this.#breach('prompt', `${effectId} has the deleted event ${row['off']}`);
    }
  }

  /** At the end: exactly the events of executed deletions are deleted. */
  check(): void {
    for (const [sessionId, { deleted_at: deletedAt }] of this.#tables.sessions) {
      if (deletedAt != null) continue;
      const ranges = this.#ranges.filter((range) => range.sessionId === sessionId);
      for (const [offset, row] of this.#tables.events.get(sessionId) ?? []) {
        const wanted = ranges.some(({ fromOffset, toOffset }) => offset >= fromOffset && offset < toOffset);
        if (wanted !== (row['deleted_at'] !== null)) this.#breach('deletion', `${offset} of ${sessionId} is ${wanted ? 'back' : 'deleted by no command'}`);
      }
    }
  }

  #problemOf({ sessionId, fromOffset, toOffset }: Range): string | null {
    const live = this.#liveIn(sessionId);
    const first = live.find(({ off }) => off === fromOffset);
    const head = this.#tables.sessions.get(sessionId)?.['head'];
    if (toOffset !== head) return `of ${sessionId} ends at ${toOffset}, the log at ${head}`;
    if (first === undefined) return `of ${sessionId} begins at ${fromOffset}, where no event is`;
    const isInTrace = live.some(({ off, trace_id: trace }) => (off as number) < fromOffset && trace === first['trace_id']);
    return isInTrace ? `of ${sessionId} begins at ${fromOffset}, in the middle of a trace` : null;
  }

  #deleted({ sessionId, fromOffset, toOffset }: Range): void {
    this.#ranges.push({ sessionId, fromOffset, toOffset });
    for (const [offset] of this.#tables.events.get(sessionId) ?? []) {
      const key = `${sessionId} ${offset}`;
      if (offset < fromOffset || offset >= toOffset || this.#deletedAtMs.has(key)) continue;
      this.#deletedAtMs.set(key, this.#scheduler.nowMs);
      this.counts.eventsDeleted += 1;
    }
  }

  #liveIn(sessionId: string): Row[] {
    return [...(this.#tables.events.get(sessionId)?.values() ?? [])].filter((row) => row['deleted_at'] === null);
  }
}
