import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Bus } from '#bus/bus.ts';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { systemClock } from '#shared/clock.ts';
import { hashOfSecret } from '#shared/keys/caller-key.ts';
import type { Database } from '#shared/storage/database.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { type AccountApp, openAccountApp } from '../test-support/account-app.ts';
import { accountLimits } from './limits.ts';

const PLACE = 'https://code.example/acme/shop/blob/main/.env';

let database: Database;
let bus: Bus;
let notices: string[];
let opened: AccountApp;

beforeAll(async () => {
  database = await openTestDatabase();
  bus = await openMemoryBus({ database, clock: systemClock });
});
afterAll(async () => {
  await bus.close();
  await database.close();
});
beforeEach(async () => {
  notices = [];
  const publish = (subject: string, body: string) => {
    notices.push(subject);
    bus.notices.publish(subject, body);
  };
  opened = openAccountApp({ database, bus: { ...bus, notices: { ...bus.notices, publish } }, clock: systemClock });
  await database.query('truncate router_keys, mails');
  return () => opened.close();
});

interface Made {
  key: string;
  data: { hash: string; label: string };
}
async function made(body: Record<string, unknown> = {}): Promise<Made> {
  const response = await opened.asManager('POST', '/keys', { name: 'Shop', owner_email: 'owner@example.com', ...body });
  return response.json();
}

const expose = (hash: string, body: object | string, headers = {}) => opened.asManager('POST', `/keys/${hash}/exposed`, body, headers);
const keyOf = async (hash: string) => (await opened.asManager('GET', `/keys/${hash}`)).json().data;
const mails = async () => (await database.query<Record<string, unknown>>('select * from mails order by created_at, id')).rows;

type Refused = [what: string, body: Record<string, unknown>, param: string];
const refused: Refused[] = [
  ['no place', {}, 'where'],
  ['an empty place', { where: '' }, 'where'],
  ['a long place', { where: 'a'.repeat(501) }, 'where'],
  ['a place of another type', { where: 7 }, 'where'],
  ['a list of places', { where: [PLACE] }, 'where'],
  ...['\u0000', '\r\nBcc: x@example.com', '\n.\r\n', '\r', '\u001b[2J', '\u2028', '\u202e', '\ud800'].map(
    (text): Refused => [`a place with ${JSON.stringify(text)}`, { where: `a${text}` }, 'where'],
  ),
  ['disable as text', { where: PLACE, disable: 'yes' }, 'disable'],
  ['disable as null', { where: PLACE, disable: null }, 'disable'],
  ['disable as a number', { where: PLACE, disable: -1e300 }, 'disable'],
  ['another recipient', { where: PLACE, owner_email: 'x@example.com' }, 'owner_email'],
];

describe('POST /keys/{hash}/exposed', () => {
  it('DESIGN 11: notes the exposure, disables the key, ends its entries in caches, and queues one mail to its owner', async () => {
    const { key, data } = await made();

    const response = await expose(data.hash, { where: PLACE });

    expect(response.statusCode).toBe(200);
    const shown = { ...data, disabled: true, exposed_at: expect.stringMatching(/^\d{4}-.*Z$/), exposed_where: PLACE, updated_at: expect.any(String) };
    expect(response.json()).toEqual({ data: shown, mail_queued: true });
    expect(await keyOf(data.hash)).toEqual(shown);
    expect(notices).toEqual([`key.${data.hash}`]);
    const rows = await mails();
    expect(rows).toMatchObject([
      { kind: 'key-exposed', recipient: 'owner@example.com', key_name: 'Shop', key_label: data.label, exposed_where: PLACE, attempts: 0, sent_at: null },
    ]);
    for (const secret of [key.slice(20, 40), data.hash]) expect(JSON.stringify(rows)).not.toContain(secret);
  });

  it('so that the key is refused, in words of its own', async () => {
    const { key, data } = await made();

    await expose(data.hash, { where: PLACE });

    const refused = await opened.asKey(key)('GET', '/key');
    expect([refused.statusCode, refused.json().error.message]).toEqual([401, 'The API key is disabled']);
  });

  it('leaves the key enabled if disable is false, and a disabled one disabled', async () => {
    const [enabled, disabled] = [await made(), await made({ disabled: true })];

    for (const { data } of [enabled, disabled]) expect((await expose(data.hash, { where: PLACE, disable: false })).json().mail_queued).toBe(true);

    expect([(await keyOf(enabled.data.hash)).disabled, (await keyOf(disabled.data.hash)).disabled]).toEqual([false, true]);
  });

  it('queues no second mail for a repeat, also for one that disables the key', async () => {
    const { data } = await made();
    const first = (await expose(data.hash, { where: PLACE, disable: false })).json();

    const repeats = await Promise.all([1, 2, 3].map(() => expose(data.hash, { where: PLACE })));

    for (const repeat of repeats) expect(repeat.json()).toMatchObject({ mail_queued: false, data: { disabled: true, exposed_at: first.data.exposed_at } });
    expect(await mails()).toHaveLength(1);
  });

  it('queues one mail for each further place, up to the limit of the exposure', async () => {
    const { data } = await made();
    const queued: boolean[] = [];
    for (let place = 0; place <= accountLimits.mailsPerExposure; place += 1)
      queued.push((await expose(data.hash, { where: `${PLACE}#${place}` })).json().mail_queued);

    expect(queued).toEqual([...Array.from({ length: accountLimits.mailsPerExposure }, () => true), false]);
    expect((await keyOf(data.hash)).exposed_where).toBe(`${PLACE}#${accountLimits.mailsPerExposure}`);
  });

  it('begins a new exposure once the key was enabled', async () => {
    const { data } = await made();
    await expose(data.hash, { where: PLACE });
    await opened.asManager('PATCH', `/keys/${data.hash}`, { name: 'Other' });
    expect(await keyOf(data.hash)).toMatchObject({ exposed_where: PLACE });

    await opened.asManager('PATCH', `/keys/${data.hash}`, { disabled: false });

    expect(await keyOf(data.hash)).toMatchObject({ disabled: false, exposed_at: null, exposed_where: null });
    expect((await expose(data.hash, { where: PLACE })).json()).toMatchObject({ mail_queued: true, data: { disabled: true } });
    expect(await mails()).toHaveLength(2);
  });

  it('notes the exposure of a key without an address, and queues the mail of a repeat once it has one', async () => {
    const { data } = await made({ owner_email: null });
    expect((await expose(data.hash, { where: PLACE })).json()).toMatchObject({ mail_queued: false, data: { disabled: true, exposed_where: PLACE } });

    await opened.asManager('PATCH', `/keys/${data.hash}`, { owner_email: 'late@example.com' });

    expect((await expose(data.hash, { where: PLACE })).json().mail_queued).toBe(true);
    expect(await mails()).toMatchObject([{ recipient: 'late@example.com' }]);
  });

  it.each(refused)('refuses %s with 400, names the field, and changes nothing', async (_, body, param) => {
    const { data } = await made();

    const response = await expose(data.hash, body);

    expect(response.statusCode).toBe(400);
    expect(response.json().error).toMatchObject({ type: 'invalid_request', param, message: expect.stringMatching(new RegExp(`^${param} `)) });
    expect(await keyOf(data.hash)).toEqual(data);
    expect([await mails(), notices]).toEqual([[], []]);
  });

  it.each([
    ['no body', '', 400],
    ['a list', '[]', 400],
    ['a place of 1 MB', JSON.stringify({ where: 'a'.repeat(1_000_000) }), 413],
  ])('refuses %s', async (_, body, status) => {
    const { data } = await made();

    expect((await expose(data.hash, body, { 'content-type': 'application/json' })).statusCode).toBe(status);
  });

  it.each([1, 2, 3])('takes the longest texts, of characters of %i bytes', async (bytes) => {
    const long = (['a', 'é', '名'][bytes - 1] ?? '').repeat(accountLimits.whereCharacters);
    const { data } = await made({ name: long.slice(0, accountLimits.nameCharacters) });

    expect((await expose(data.hash, { where: long })).json()).toMatchObject({ mail_queued: true, data: { exposed_where: long } });
  });

  it.each(['0'.repeat(64), 'x', '%00'])('of an unknown key is 404 (%s)', async (hash) => {
    expect((await expose(hash, { where: PLACE })).statusCode).toBe(404);
  });

  it('of a key of the file is 409, and says where to remove it', async () => {
    const response = await expose(hashOfSecret('plain'), { where: PLACE });

    expect(response.statusCode).toBe(409);
    expect(response.json().error.message).toBe("This key is of the router's configuration: remove it there, and give its callers another");
    expect([await mails(), notices]).toEqual([[], []]);
  });

  it('of any key is for management keys', async () => {
    const { key, data } = await made();

    for (const secret of [key, 'plain']) expect((await opened.asKey(secret)('POST', `/keys/${data.hash}/exposed`, { where: PLACE })).statusCode).toBe(403);
    expect(await keyOf(data.hash)).toEqual(data);
  });
});
