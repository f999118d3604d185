import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

const folder = new URL('./migrations/', import.meta.url);
const files = readdirSync(folder).filter((name) => name.endsWith('.sql'));
const sql = files.map((name) => readFileSync(new URL(name, folder), 'utf8').replace(/--.*$/gm, '')).join('\n');

/** Tables that an owner's commits write; all others are written row by row, where a refusal fails one request. */
const committed = [
  'parts',
  'sessions',
  'customers',
  'session_labels',
  'events',
  'seen',
  'effects',
  'outbox',
  'timers',
  'steps',
  'turn_steps',
  'agent_states',
  'run_calls',
  'deliveries',
  'dead_letters',
];

function definitionOf(table: string): string {
  return new RegExp(`create table ${table} \\(([\\s\\S]*?)\\)(?: with \\(.*\\))?;`).exec(sql)?.[1] ?? expect.fail(`no table ${table}`);
}

describe('the tables', () => {
  it('DESIGN 3: a migration only adds, so that programs of the release before go on working', () => {
    expect(files.length).toBeGreaterThan(1);
    expect(sql).not.toMatch(/\b(?:drop|rename|truncate|alter column|set not null)\b/i);
    // A column added to an old table is nullable or has a default, since programs of the release before insert without it.
    for (const [added] of sql.matchAll(/add column[^;]*/gi)) expect(added).not.toMatch(/not null(?![^,]*default)/i);
  });

  it('DESIGN 4: bodies are json and never jsonb, which refuses characters that JSON has', () => {
    expect(sql).toMatch(/\bjson\b/);
    expect(sql).not.toMatch(/\bjsonb\b/i);
  });

  it('DESIGN 4: no row of a commit can be refused by another row: no foreign keys, checks or unique keys but that of processed commands and the addresses', () => {
    expect(sql).not.toMatch(/\b(?:references|foreign key|check\s*\(|exclude|create unique|create trigger)\b/i);
    const keys = committed.map((table) => [table, ...(definitionOf(table).match(/^.*\b(?:primary key|unique)\b.*$/gim) ?? []).map((line) => line.trim())]);

    expect(Object.fromEntries(keys.map(([table, ...lines]) => [table, lines]))).toEqual({
      parts: ['p int primary key,'],
      sessions: ['id text primary key,'],
      // A commit inserts with `on conflict do nothing`.
      customers: ['id text primary key,'],
      session_labels: [],
      events: ['primary key (session_id, off)'],
      seen: ['primary key (session_id, command_id)'],
      effects: [],
      outbox: [],
      timers: ['primary key (p, key)'],
      steps: [],
      turn_steps: [],
      agent_states: [],
      run_calls: [],
      deliveries: [],
      dead_letters: [],
    });
  });
});
