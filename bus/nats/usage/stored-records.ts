import type { MsgHdrs } from '@nats-io/transport-node';
import type { UsageMessage } from '../../bus.ts';
import { fromWireId, MESSAGE_ID_HEADER } from '../connection/wire-id.ts';
import { PACKED_ID, unpacked } from './packed-records.ts';

/** The records of a message of the log, at least one. What can't be read is one record, which its handler sets aside. */
export function storedRecords(headers: MsgHdrs | undefined, body: string): UsageMessage[] {
  const messageId = fromWireId(headers?.get(MESSAGE_ID_HEADER) ?? '');
  const several = messageId.startsWith(PACKED_ID) ? unpacked(body) : null;
  return several ?? [{ messageId, body }];
}
