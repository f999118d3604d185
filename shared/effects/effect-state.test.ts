import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Database } from '../storage/database.ts';
import { migrate } from '../storage/migrate.ts';
import { openTestDatabase } from '../storage/pglite/test-support/open-test-database.ts';
import { isEffectOpen, mayBeDoneAlready } from './effect-state.ts';

describe('isEffectOpen', () => {
  let database: Database;
  beforeAll(async () => {
    database = await openTestDatabase();
    await migrate(database);
    await database.query(
      `insert into effects (id, p, session_id, turn_id, kind, state, inputs, created_at)
       select state, 1, 's', 't', 'tool-call', state, '{}', now() from unnest(array['open', 'done', 'superseded']) as state`,
    );
  });
  afterAll(() => database.close());

  it.each([
    ['open', true],
    ['done', false],
    ['superseded', false],
    ['unheard-of', null],
  ])('of an effect that is %s is %s', async (id, isOpen) => {
    expect(await isEffectOpen(database, id)).toBe(isOpen);
  });
});

describe('mayBeDoneAlready', () => {
  it.each([
    ['a first delivery', { deliveryCount: 1, publishedAtMs: 40_000 }, false, false],
    ['a second delivery', { deliveryCount: 2, publishedAtMs: 100_000 }, false, true],
    ['what a take-over has published again', { deliveryCount: 1, publishedAtMs: 100_000 }, true, true],
    ['what has waited for over a minute', { deliveryCount: 1, publishedAtMs: 39_999 }, false, true],
  ])('of %s', (_, item, republished, expected) => {
    expect(mayBeDoneAlready(item, republished, 100_000)).toBe(expected);
  });
});
