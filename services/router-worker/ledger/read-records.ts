import { z } from 'zod';
import type { UsageMessage } from '#bus/bus.ts';
import { ledgerFieldsIn, usageRecord } from '#bus/messages/usage.ts';
import { jsonIn } from '#shared/json-in.ts';
import type { ReadRecord } from './write-usage.ts';

/** A record that no ledger can have. */
export interface UnusableRecord extends UsageMessage {
  /** For people. */
  reason: string;
}

/** Divides a batch into what can be written and what can't be read, such as a record of a newer version. */
export function readRecords(messages: readonly UsageMessage[]): { read: ReadRecord[]; unusable: UnusableRecord[] } {
  const read: ReadRecord[] = [];
  const unusable: UnusableRecord[] = [];
  for (const message of messages) {
    const { body } = message;
    const fields = isOneLine(body) ? ledgerFieldsIn(body) : null;
    if (fields !== null) read.push({ record: fields, body });
    else {
      const json = jsonIn(body);
      const parsed = usageRecord.safeParse(json);
      if (parsed.success) read.push({ record: parsed.data, body: isOneLine(body) ? body : JSON.stringify(json) });
      else unusable.push({ ...message, reason: `not a usage record: ${z.prettifyError(parsed.error)}` });
    }
  }
  return { read, unusable };
}

function isOneLine(body: string): boolean {
  return !body.includes('\n');
}
