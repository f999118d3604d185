import type { Database, NamedStatement, QueryResult } from '../../shared/storage/database.ts';
import { commit, type Fence } from './model-commit.ts';
import { ModelTables, type Row, read } from './model-rows.ts';
import {
  ACCEPT_RUN,
  ACCEPTED_COLUMNS,
  ANSWERS,
  DELIVERY_COLUMNS,
  FRESH_PART,
  INSERT_DEAD_LETTER,
  OPEN_EFFECTS,
  RELEASE,
  REPEATS,
  RUN_COLUMNS,
  STORE_TOOLS,
  SWEEP_CLAIMS,
  SWEEP_LISTS,
  SWEEP_MARKS,
  SWEEP_SERVERS,
} from './model-statements.ts';

type Carry = (parameters: readonly unknown[]) => Row[];

/** Thrown for a statement that is not modelled, so that a new one is noticed. */
class UnknownStatement extends Error {}

/**
 * The database as far as the runtime and the workers use it, in memory: each of their statements is identified by its name, or by its
 * text where it has none, and has the effect that it has in PostgreSQL (model-database.test.ts compares the two).
 * Statements are executed one after the other.
 */
export class ModelDatabase implements Pick<Database, 'query'> {
  readonly tables = new ModelTables();
  readonly #fence: Fence;
  readonly #nowMs: () => number;
  readonly #statements: ReadonlyMap<string, Carry>;

  constructor(nowMs: () => number, fence: Fence = { owner: true, epoch: true, commitNo: true }) {
    this.#nowMs = nowMs;
    this.#fence = fence;
    this.#statements = new Map([
      ...Object.entries(this.#ownership()),
      ...Object.entries(this.#reads()),
      ...Object.entries(this.#runs()),
      ...Object.entries(this.#work()),
      ...Object.entries(this.#upkeep()),
    ]);
  }

  async query<Found extends object>(statement: string | NamedStatement, parameters: readonly unknown[] = []): Promise<QueryResult<Found>> {
    return this.carryOut(statement, parameters) as QueryResult<Found>;
  }

  /** @throws UnknownStatement for what is not modelled */
  carryOut(statement: string | NamedStatement, parameters: readonly unknown[]): QueryResult<Row> {
    const name = typeof statement === 'string' ? statement.replaceAll(/\s+/g, ' ').trim() : statement.name;
    const carry = this.#statements.get(name);
    if (carry === undefined) throw new UnknownStatement(`the model does not know the statement: ${name}`);
    const rows = carry(parameters);
    return { rows, rowCount: rows.length };
  }

  #ownership(): Record<string, Carry> {
    const { tables } = this;
    const isRunning = (id: unknown, withinMs: unknown) => {
      const host = tables.hosts.get(id as string);
      return host !== undefined && (host['seen_at'] as Date).getTime() > this.#nowMs() - (withinMs as number);
    };
    // The shorter statement has a prefix of the other's parameters.
    const carry = (parameters: readonly unknown[]) => [{ owned: commit(tables, parameters, this.#fence, this.#nowMs()) }];
    return {
      commit: carry,
      'commit-turns': carry,
      heartbeat: ([id, version, expiresAfterMs, , sinceAgoMs, seenAgoMs, created, isStopping]) => {
        const nowMs = this.#nowMs();
        const before = (agoMs: unknown) => (agoMs === null ? null : new Date(nowMs - (agoMs as number)));
        const agoOf = (at: unknown) => (at === null ? null : nowMs - (at as Date).getTime());
        const others = [...tables.hosts.values()].filter((host) => host['id'] !== id && isRunning(host['id'], expiresAfterMs));
        const bus = { bus_since: before(sinceAgoMs), bus_seen_at: before(seenAgoMs), log_created: created };
        const stoppingSince = isStopping === true ? (tables.hosts.get(id as string)?.['stopping_since'] ?? new Date(nowMs)) : null;
        tables.hosts.set(id as string, { id, machine_v: version, seen_at: new Date(nowMs), ...bus, stopping_since: stoppingSince });
        const isEarlier = (host: Row) => {
          if (host['stopping_since'] === null || stoppingSince === null) return false;
          const ahead = (stoppingSince as Date).getTime() - (host['stopping_since'] as Date).getTime();
          return ahead > 0 || (ahead === 0 && (host['id'] as string) < (id as string));
        };
        return others
          .map((host) => ({
            ...read(host, ['id', 'machine_v', 'log_created']),
            stopping: host['stopping_since'] !== null,
            stopping_earlier: isEarlier(host),
            bus_since_ago_ms: agoOf(host['bus_since']),
            bus_seen_ago_ms: agoOf(host['bus_seen_at']),
          }))
          .sort((left, right) => String((left as Row)['id']).localeCompare(String((right as Row)['id'])));
      },
      'hosts-of-other-logs': ([id, created, expiresAfterMs]) => {
        const isFresh = (host: Row) => host['bus_seen_at'] !== null && (host['bus_seen_at'] as Date).getTime() > this.#nowMs() - (expiresAfterMs as number);
        return [...tables.hosts.values()]
          .filter((host) => host['id'] !== id && host['log_created'] !== created && isRunning(host['id'], expiresAfterMs) && isFresh(host))
          .map((host) => read(host, ['id', 'log_created', 'bus_seen_at']))
          .sort((left, right) => String(left['id']).localeCompare(String(right['id'])));
      },
      'delete from hosts where id = $1': ([id]) => {
        tables.hosts.delete(id as string);
        return [];
      },
      'take-partitions': ([id, version, created, wanted, expiresAfterMs]) => {
        const taken: Row[] = [];
        for (const p of [...(wanted as number[])].sort((left, right) => left - right)) {
          const part = tables.parts.get(p);
          if (part === undefined || (part['machine_v'] as number) > (version as number)) continue;
          const { owner } = part;
          if (owner !== null && owner !== id && isRunning(owner, expiresAfterMs)) continue;
          if (part['log_created'] !== created) Object.assign(part, { cursor: 0, cursor_msg: null });
          Object.assign(part, { epoch: (part['epoch'] as number) + 1, owner: id, machine_v: version, log_created: created });
          taken.push(read(part, ['p', 'epoch', 'commit_no', 'cursor', 'cursor_msg']));
        }
        return taken;
      },
      [RELEASE]: ([partitions, epochs, owners]) => {
        for (const [index, p] of (partitions as number[]).entries()) {
          const part = tables.parts.get(p);
          if (part !== undefined && part['epoch'] === (epochs as number[])[index] && part['owner'] === (owners as string[])[index]) part['owner'] = null;
        }
        return [];
      },
      'release-outside': ([id, keep]) => {
        const parts = [...tables.parts.values()];
        const rows = parts.map((part) => {
          const isOurs = part['owner'] === id;
          return { ...read(part, ['p', 'epoch', 'commit_no', 'owner']), is_released: isOurs && !(keep as number[]).includes(part['p'] as number) };
        });
        for (const [index, part] of parts.entries()) if (rows[index]?.is_released === true) part['owner'] = null;
        return rows;
      },
      'select p, epoch, commit_no, owner from parts where p = any($1::int[])': ([wanted]) =>
        pick(tables.parts, wanted as number[]).map((part) => read(part, ['p', 'epoch', 'commit_no', 'owner'])),
      'select cursor, cursor_msg from parts order by cursor limit 1': () =>
        [...tables.parts.values()]
          .sort((left, right) => (left['cursor'] as number) - (right['cursor'] as number))
          .slice(0, 1)
          .map((part) => read(part, ['cursor', 'cursor_msg'])),
    };
  }

  #reads(): Record<string, Carry> {
    const { tables } = this;
    return {
      'load-sessions': ([ids]) =>
        pick(tables.sessions, ids as string[]).map((row) => ({
          ...read(row, ['id', 'p', 'head', 'snapshot', 'record']),
          is_deleted: row['deleted_at'] !== null,
        })),
      [REPEATS]: ([sessions, commands]) =>
        pick(
          tables.seen,
          (sessions as string[]).map((session, index) => `${session} ${(commands as string[])[index]}`),
        ).map((row) => read(row, ['session_id', 'command_id', 'answer'])),
      [OPEN_EFFECTS]: ([partitions]) =>
        [...tables.effects.values()]
          .flat()
          .filter((row) => row['state'] === 'open' && (partitions as number[]).includes(row['p'] as number))
          .sort((left, right) => Number(left['created_at']) - Number(right['created_at']))
          .map((row) => ({
            ...read(row, ['id', 'p', 'session_id', 'turn_id', 'kind', 'inputs', 'created_at']),
            unpublished: tables.outbox.some(({ p, id }) => p === row['p'] && id === row['id']),
            claimed: tables.claims.has(row['id'] as string),
          })),
      'select p, key, due_at, command::text as command from timers where p = any($1::int[])': ([partitions]) =>
        [...tables.timers.values()]
          .filter((row) => (partitions as number[]).includes(row['p'] as number))
          .map((row) => ({ ...read(row, ['p', 'key', 'due_at']), command: row['command'] })),
      'load-history': ([session, upTo, limit]) =>
        [...(tables.events.get(session as string)?.values() ?? [])]
          .filter((row) => (row['off'] as number) <= (upTo as number) && ['user_message', 'assistant_message', 'preamble'].includes(row['kind'] as string))
          .sort((left, right) => (right['off'] as number) - (left['off'] as number))
          .slice(0, limit as number)
          .map((row) => read(row, ['body'])),
      'select body from bundles where hash = $1': ([hash]) => pick(tables.bundles, [hash as string]).map((row) => read(row, ['body'])),
    };
  }

  #runs(): Record<string, Carry> {
    const { tables } = this;
    const runs = (ids: unknown) => pick(tables.runs, [...new Set(ids as string[])]);
    return {
      'load-runs': ([ids]) => runs(ids).map((row) => ({ ...read(row, RUN_COLUMNS), input: row['input'], metadata: row['metadata'] ?? null })),
      'settled-runs': ([ids]) =>
        runs(ids)
          .filter(({ state }) => state === 'succeeded' || state === 'failed')
          .map((row) => read(row, ['id'])),
      'superseded-effects': ([ids]) =>
        (ids as string[])
          .flatMap((id) => tables.effects.get(id) ?? [])
          .filter(({ state }) => state === 'superseded')
          .map((row) => read(row, ['id'])),
      'load-tool-lists': ([hashes]) => pick(tables.toolLists, hashes as string[]).map((row) => read(row, ['hash', 'tools'])),
      'load-staged': ([ids, from]) =>
        (ids as string[]).flatMap((id, index) =>
          (tables.steps.get(id) ?? [])
            .filter(({ seq }) => (seq as number) >= ((from as number[])[index] ?? 0))
            .map((row) => read(row, ['run_id', 'seq', 'message'])),
        ),
      'lost-starts': ([partitions, olderMs, limit]) =>
        [...tables.runs.values()]
          .filter(({ state, p }) => state === 'accepted' && (partitions as number[]).includes(p as number))
          .filter((row) => (row['created_at'] as Date).getTime() <= this.#nowMs() - (olderMs as number))
          .filter((row) => !tables.seen.has(`${row['session_id']} ${row['id']}`))
          .sort((left, right) => Number(left['created_at']) - Number(right['created_at']))
          .slice(0, limit as number)
          .map((row) => read(row, ['id', 'p', 'session_id', 'traceparent', 'created_at'])),
      'select message from steps where run_id = $1 and seq < $2 order by seq': ([id, below]) =>
        inOrder(tables.steps.get(id as string))
          .filter(({ seq }) => (seq as number) < (below as number))
          .map((row) => read(row, ['message'])),
      [ANSWERS]: ([id]) =>
        inOrder(tables.steps.get(id as string))
          .reverse()
          .filter(({ message }) => (message as string).startsWith('{"role":"assistant"'))
          .map((row) => read(row, ['message'])),
    };
  }

  #work(): Record<string, Carry> {
    const { tables } = this;
    return {
      effect_state: ([id]) => {
        const rows = tables.effects.get(id as string) ?? [];
        return [{ open: rows.length === 0 ? null : rows.some(({ state }) => state === 'open') }];
      },
      effect_worker_delivery: ([id]) => (tables.deliveries.get(id as string) ?? []).slice(0, 1).map((row) => read(row, DELIVERY_COLUMNS, 'deliveries')),
      'callbacks-left': ([limit]) => {
        const rounds = [...tables.effects.values()].flat().filter(({ state, kind }) => state === 'open' && kind === 'delivery');
        const retries = [...tables.timers.values()].filter(({ key }) => (key as string).endsWith('-due'));
        const ids = [...rounds.map((row) => row['turn_id']), ...retries.map((row) => JSON.parse(row['command'] as string).deliveryId)];
        const urls = new Set(ids.flatMap((id) => tables.deliveries.get(id as string) ?? []).map((row) => row['url']));
        return [...urls].slice(0, limit as number).map((url) => ({ url }));
      },
      effect_worker_attempt: ([id, most]) => {
        const rows = (tables.deliveries.get(id as string) ?? []).filter((row) => row['state'] === 'open' && (row['attempts'] as number) < (most as number));
        for (const row of rows) row['attempts'] = (row['attempts'] as number) + 1;
        return rows.map((row) => read(row, ['attempts']));
      },
      effect_worker_claim: ([id]) => {
        if (tables.claims.has(id as string)) return [];
        tables.claims.set(id as string, { effect_id: id, claimed_at: new Date(this.#nowMs()) });
        return [{}];
      },
      effect_worker_claimed: ([id]) => (tables.claims.has(id as string) ? [{ one: 1 }] : []),
      [INSERT_DEAD_LETTER]: ([id, p, source, reason, body]) => {
        if (tables.deadLetters.some((row) => row['id'] === id && row['source'] === source)) return [];
        tables.deadLetters.push({ id, p, source, reason, body, created_at: new Date(this.#nowMs()) });
        return [];
      },
    };
  }

  /** Statements of start and sweep. No row gets old enough to be swept here, and workers store none. */
  #upkeep(): Record<string, Carry> {
    const { tables } = this;
    const nothing = () => [];
    return {
      "insert into meta (key, value) values ('partition_count', $1) on conflict (key) do nothing": ([value]) => {
        if (!tables.meta.has('partition_count')) tables.meta.set('partition_count', { key: 'partition_count', value });
        return [];
      },
      "select value from meta where key = 'partition_count'": () => [...tables.meta.values()].map((row) => read(row, ['value'])),
      'insert into parts (p) select generate_series(0, $1::int) on conflict (p) do nothing': ([last]) => {
        for (let p = 0; p <= (last as number); p += 1) if (!tables.parts.has(p)) tables.parts.set(p, { ...FRESH_PART, p });
        return [];
      },
      'insert into bundles (hash, body) values ($1, $2) on conflict (hash) do nothing': ([hash, body]) => {
        tables.bundles.set(hash as string, { hash, body });
        return [];
      },
      [STORE_TOOLS]: ([hash, tools]) => {
        tables.toolLists.set(hash as string, { hash, tools, created_at: new Date(this.#nowMs()), unused_since: null });
        return [];
      },
      [ACCEPT_RUN]: (values) => {
        const row: Row = { state: 'accepted', traceparent: null, output: null, error: null, started_at: null, completed_at: null };
        for (const [index, column] of ACCEPTED_COLUMNS.entries()) row[column] = values[index];
        tables.runs.set(row['id'] as string, row);
        return [];
      },
      [SWEEP_CLAIMS]: nothing,
      [SWEEP_SERVERS]: nothing,
      [SWEEP_MARKS]: () => {
        for (const row of tables.toolLists.values()) row['unused_since'] ??= new Date(this.#nowMs());
        return [];
      },
      [SWEEP_LISTS]: nothing,
    };
  }
}

function pick<Key>(rows: ReadonlyMap<Key, Row>, keys: readonly Key[]): Row[] {
  const found: Row[] = [];
  for (const key of keys) {
    const row = rows.get(key);
    if (row !== undefined) found.push(row);
  }
  return found;
}

function inOrder(rows: readonly Row[] = []): Row[] {
  return [...rows].sort((left, right) => (left['seq'] as number) - (right['seq'] as number));
}
