import type { BrokerStatus } from '../../runtime/partitions/bus-contact.ts';
import type { LiveHost } from '../../runtime/partitions/rendezvous.ts';

/** How long a host without heartbeats stays stored, for operators. */
export const FORGET_HOST_AFTER_MS = 3_600_000;

interface Heartbeat {
  hostId: string;
  machineVersion: number;
  bus: BrokerStatus | null;
  isStopping: boolean;
  /** Other hosts without a heartbeat for this long are dead. */
  expiresAfterMs: number;
}

/** A live host whose broker has another command log. */
export interface HostOfOtherLog {
  id: string;
  logCreated: string;
  /** Its broker's last reply, by the store's clock. */
  answeredAtMs: number;
}

export interface HostStore {
  /** Stores this host's heartbeat, by the store's clock. @returns the other live hosts */
  beat(heartbeat: Heartbeat): Promise<LiveHost[]>;
  /** So that others take over without waiting for the expiry. */
  deregister(hostId: string): Promise<void>;
  /** Of hosts with a reply of their broker within `expiresAfterMs`; in order of their ids. */
  ofOtherLogs(than: { hostId: string; logCreated: string; expiresAfterMs: number }): Promise<HostOfOtherLog[]>;
}
