import type { Living } from '#shared/config/living.ts';
import { type CallerKey, refusalOf } from '#shared/keys/caller-key.ts';
import type { GatewaySetup } from '../gateway-setup.ts';
import type { KeyRow, KeyRows, KeyWithSpend } from './key-rows.ts';
import type { SpendRows } from './spend-rows.ts';

const HASH = /^[0-9a-f]{64}$/;

export function isKeyHash(text: string): boolean {
  return HASH.test(text);
}

/** All keys with what they have spent: those of the router's file as it is now, and rows. */
export class KnownKeys {
  readonly #setup: Living<Pick<GatewaySetup, 'fileKeys'>>;
  readonly #keyRows: KeyRows;
  readonly #spendRows: SpendRows;

  constructor(setup: Living<Pick<GatewaySetup, 'fileKeys'>>, keyRows: KeyRows, spendRows: SpendRows) {
    this.#setup = setup;
    this.#keyRows = keyRows;
    this.#spendRows = spendRows;
  }

  get #ofFile(): ReadonlyMap<string, CallerKey> {
    return this.#setup.current().fileKeys;
  }

  isOfFile(hash: string): boolean {
    return this.#ofFile.has(hash);
  }

  /** Null: there is no such key. */
  async find(hash: string): Promise<KeyWithSpend | null> {
    const fileKey = this.#ofFile.get(hash);
    if (fileKey !== undefined) return (await this.#withSpend([fileKey]))[0] ?? null;
    return isKeyHash(hash) ? this.#keyRows.byHash(hash) : null;
  }

  /** Keys of the file in their order, then rows, newest first. */
  async page({ withDisabled, offset, limit }: { withDisabled: boolean; offset: number; limit: number }): Promise<KeyWithSpend[]> {
    const listed = [...this.#ofFile.values()].filter(({ disabled }) => withDisabled || !disabled);
    const shown = await this.#withSpend(listed.slice(offset, offset + limit));
    const left = limit - shown.length;
    if (left === 0) return shown;
    const rows = await this.#keyRows.page({ withDisabled, offset: Math.max(0, offset - listed.length), limit: left });
    return [...shown, ...rows];
  }

  /** Keys of the file that have a limit and may still be used. */
  limitedOfFile(nowMs: number): Promise<KeyWithSpend[]> {
    return this.#withSpend([...this.#ofFile.values()].filter((key) => key.limitNano !== null && refusalOf(key, nowMs) === null));
  }

  async #withSpend(fileKeys: readonly CallerKey[]): Promise<KeyWithSpend[]> {
    const spend = await this.#spendRows.of(fileKeys.map(({ id }) => id));
    return fileKeys.map((key) => ({ key: rowOfFileKey(key), spend: spend.get(key.id) ?? null }));
  }
}

/** The configuration has no creation time, and clients want one. */
const CREATED_UNKNOWN = new Date(0);

function rowOfFileKey(key: CallerKey): KeyRow {
  const { id, hash, label, isManagement, disabled, expiresAtMs, limitNano, limitReset, rates } = key;
  const ofRowsAlone = {
    includeByokInLimit: false,
    ownerEmail: null,
    creatorUserId: null,
    createdAt: CREATED_UNKNOWN,
    updatedAt: null,
    exposedAt: null,
    exposedWhere: null,
  };
  const expiresAt = expiresAtMs === null ? null : new Date(expiresAtMs);
  return { id, hash, name: label, label, isManagement, disabled, limitNano, limitReset, expiresAt, ...rates, ...ofRowsAlone };
}
