/** Of some schedules: publishes are those of the driver, and go to three servers. */
export function isCluster(seed: number): boolean {
  return seed % 5 === 3;
}

/** Of some schedules: the events of all sessions are posted. */
export function hasEventWebhook(seed: number): boolean {
  return seed % 4 === 0;
}

/** Of every second schedule of each half: one of the agents has policies, a routine and tools. */
export function hasEngine(seed: number): boolean {
  return Math.floor(seed / 2) % 2 === 0;
}

/** Of some of those: vectors choose the terms of its prompts. */
export function comparesVectors(seed: number): boolean {
  return seed % 11 === 3 || seed % 11 === 10;
}
