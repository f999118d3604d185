/** @typedef {import('../targets/start-target.mjs').Target} Target */

/** A host's histogram of the commands per commit. */
const BATCHES = 'switchyard_commit_batch_commands';

/** Commits of all hosts so far, and the commands in them. @param {Target} target @returns {Promise<{ commits: number, commands: number }>} */
export async function commitsOf({ facts: { management = [] } }) {
  const sums = { commits: 0, commands: 0 };
  for (const { role, managementUrl } of management) {
    if (role !== 'actor-host') continue;
    const text = await (await fetch(`${managementUrl}/metrics`)).text();
    sums.commands += metric(text, `${BATCHES}_sum`);
    sums.commits += metric(text, `${BATCHES}_count`);
  }
  return sums;
}

/** @param {string} text in the format of Prometheus @param {string} name @throws when it is not there */
function metric(text, name) {
  const [, value] = new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)$`, 'm').exec(text) ?? [];
  if (value === undefined) throw new Error(`there is no metric ${name}`);
  return Number(value);
}
