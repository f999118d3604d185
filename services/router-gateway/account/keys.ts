import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import type { Bus } from '#bus/bus.ts';
import { addresses, subjectOf } from '#bus/subjects.ts';
import type { Clock } from '#shared/clock.ts';
import { nanoOfUsd } from '#shared/credit/nano-usd.ts';
import { windowsAt } from '#shared/credit/spend-windows.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { ulid } from '#shared/ids.ts';
import { keyScopes } from '../plugins/key-scopes.ts';
import { keyRecordOf } from './key-record.ts';
import type { KeyChanges, KeyRows, KeyWithSpend, NewKeyRow } from './key-rows.ts';
import { type ChangeKeyRequest, changeKeyRequest, createKeyRequest, exposedKeyRequest, listKeysQuery } from './key-schemas.ts';
import { isKeyHash, type KnownKeys } from './known-keys.ts';
import { accountLimits } from './limits.ts';
import { newSecret } from './new-secret.ts';

export interface KeysDeps {
  knownKeys: KnownKeys;
  keyRows: KeyRows;
  bus: Pick<Bus, 'notices'>;
  clock: Clock;
}

/** GET, POST /keys, GET, PATCH, DELETE /keys/{hash} and POST /keys/{hash}/exposed, for management keys. Keys of the file are listed first, and cannot be changed. */
export function keys({ knownKeys, keyRows, bus, clock }: KeysDeps): FastifyPluginAsyncZod {
  const params = z.object({ hash: z.string() });
  const recordOf = (key: KeyWithSpend) => keyRecordOf(key, windowsAt(clock.nowMs()));
  const checkChangeable = (hash: string, instead = 'change it there') => {
    if (knownKeys.isOfFile(hash)) throw new SwitchyardError('request.conflict', `This key is of the router's configuration: ${instead}`);
    if (!isKeyHash(hash)) throw unknownKey();
  };
  /** Ends the key's entry in all caches. A notice may be lost: entries expire, too. */
  const announce = (hash: string) => bus.notices.publish(subjectOf(addresses.keys, hash), '{"v":1}');

  return async (app) => {
    app.addHook('onRequest', keyScopes.managementOnly);

    app.get('/keys', { schema: { querystring: listKeysQuery } }, async ({ query }) => {
      const page = await knownKeys.page({ withDisabled: query.include_disabled, offset: query.offset, limit: accountLimits.pageKeys });
      return { data: page.map(recordOf) };
    });

    app.post('/keys', { schema: { body: createKeyRequest } }, async ({ body }, reply) => {
      const nowMs = clock.nowMs();
      const { secret, hash, label } = newSecret();
      const identity = { id: `key_${ulid(nowMs).toLowerCase()}`, hash, label, creatorUserId: body.creator_user_id ?? null };
      const key = await keyRows.insert({ ...newKeyDefaults, ...identity, ...changesOf(body, nowMs), name: body.name }, 'management');
      return reply.code(201).send({ data: recordOf({ key, spend: null }), key: secret });
    });

    app.get('/keys/:hash', { schema: { params } }, async ({ params: { hash } }) => {
      const found = await knownKeys.find(hash);
      if (found === null) throw unknownKey();
      return { data: recordOf(found) };
    });

    app.patch('/keys/:hash', { schema: { params, body: changeKeyRequest } }, async ({ params: { hash }, body }) => {
      checkChangeable(hash);
      const changed = await keyRows.change(hash, changesOf(body, clock.nowMs()));
      if (changed === null) throw unknownKey();
      announce(hash);
      return { data: recordOf(changed) };
    });

    app.post('/keys/:hash/exposed', { schema: { params, body: exposedKeyRequest } }, async ({ params: { hash }, body }) => {
      checkChangeable(hash, 'remove it there, and give its callers another');
      const mailId = `mail_${ulid(clock.nowMs()).toLowerCase()}`;
      const exposed = await keyRows.expose(hash, { ...body, mailId, maxMails: accountLimits.mailsPerExposure });
      if (exposed === null) throw unknownKey();
      announce(hash);
      return { data: recordOf(exposed), mail_queued: exposed.isMailQueued };
    });

    app.delete('/keys/:hash', { schema: { params } }, async ({ params: { hash } }) => {
      checkChangeable(hash);
      const isRemoved = await keyRows.remove(hash);
      // Also when it was removed before: the notice of that may have been lost.
      announce(hash);
      if (!isRemoved) throw unknownKey();
      return { deleted: true };
    });
  };
}

/** Of fields that are not given. */
export const newKeyDefaults = {
  disabled: false,
  limitNano: null,
  limitReset: null,
  includeByokInLimit: false,
  expiresAt: null,
  ownerEmail: null,
  requestsPerMinute: null,
  tokensPerMinute: null,
  callsAtOnce: null,
} as const satisfies Omit<NewKeyRow, 'id' | 'hash' | 'label' | 'creatorUserId' | 'name'>;

/** @throws `request.invalid` for an expiry that has passed */
function changesOf(body: ChangeKeyRequest, nowMs: number): KeyChanges {
  const { name, disabled, limit, limit_reset: limitReset, include_byok_in_limit: includeByokInLimit, expires_at, owner_email: ownerEmail } = body;
  const { requests_per_minute: requestsPerMinute, tokens_per_minute: tokensPerMinute, calls_at_once: callsAtOnce } = body;
  const changes = {
    name,
    disabled,
    limitNano: typeof limit === 'number' ? nanoOfUsd(limit) : limit,
    limitReset,
    includeByokInLimit,
    expiresAt: typeof expires_at === 'string' ? futureTime(expires_at, nowMs) : expires_at,
    ownerEmail,
    requestsPerMinute,
    tokensPerMinute,
    callsAtOnce,
  };
  return Object.fromEntries(Object.entries(changes).filter(([, value]) => value !== undefined));
}

/** @throws `request.invalid` for a time that has passed */
export function futureTime(text: string, nowMs: number): Date {
  const time = new Date(text);
  if (time.getTime() > nowMs) return time;
  const param = 'expires_at';
  throw new SwitchyardError('request.invalid', `${param} must be in the future; to end a key now, disable it`, { details: { param } });
}

function unknownKey(): SwitchyardError {
  return new SwitchyardError('request.not_found', 'There is no key with this hash');
}
