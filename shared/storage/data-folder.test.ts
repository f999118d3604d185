import { type ChildProcess, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { lockDataFolder } from './data-folder.ts';

describe('holdDataFolder', () => {
  let root: string;
  let folder: string;
  let lock: string;
  const children: ChildProcess[] = [];

  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), 'switchyard-folder-'));
    folder = join(root, 'data');
    lock = join(folder, 'switchyard.lock');
  });
  afterEach(async () => {
    for (const child of children.splice(0)) if (child.exitCode === null && child.kill('SIGKILL')) await once(child, 'close');
    await rm(root, { recursive: true, force: true });
  });

  async function leaveLock(content: object | string): Promise<void> {
    await mkdir(folder, { recursive: true });
    await writeFile(lock, typeof content === 'string' ? content : JSON.stringify({ command: 'node main.js', nonce: 'left behind', ...content }));
  }
  function run(command: string, args: string[]): ChildProcess {
    const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    children.push(child);
    return child;
  }
  async function lineOf(child: ChildProcess): Promise<string> {
    if (child.stdout === null) throw new Error('the child has no output');
    for await (const line of createInterface({ input: child.stdout })) return line;
    throw new Error('the child printed nothing');
  }
  const liveProcess = async (): Promise<number> => {
    const child = run(process.execPath, ['-e', "console.log('up'); setInterval(() => {}, 60_000)"]);
    await lineOf(child);
    return child.pid ?? Number.NaN;
  };
  const deadProcess = async (): Promise<number> => {
    const child = run(process.execPath, ['-e', '']);
    await once(child, 'close');
    return child.pid ?? Number.NaN;
  };

  it('DESIGN 3: a folder that a running process has locked is refused, and the process and the folder are named', async () => {
    const pid = await liveProcess();
    await leaveLock({ pid, startedAtTicks: await startOf(pid) });

    await expect(lockDataFolder(folder)).rejects.toMatchObject({
      code: 'storage.folder_held',
      message: expect.stringMatching(new RegExp(`${folder}.* process ${pid} \\(node main\\.js\\)`)),
    });
    expect(await readdir(folder)).toEqual(['switchyard.lock']);
  });

  it('refuses a folder that is locked by a running process without a start time', async () => {
    await leaveLock({ pid: await liveProcess(), startedAtTicks: null });

    await expect(lockDataFolder(folder)).rejects.toMatchObject({ code: 'storage.folder_held' });
  });

  it('refuses a folder that this process has locked itself', async () => {
    const held = await lockDataFolder(folder);

    await expect(lockDataFolder(folder)).rejects.toMatchObject({ code: 'storage.folder_held', details: { pid: process.pid } });
    await held.release();
  });

  it('reports that a folder can not be created', async () => {
    await writeFile(join(root, 'file'), '');
    const impossible = join(root, 'file', 'data');

    await expect(lockDataFolder(impossible)).rejects.toMatchObject({ code: 'config.invalid', message: expect.stringContaining(impossible) });
  });

  it('reports that a folder is a file', async () => {
    await writeFile(folder, '');

    await expect(lockDataFolder(folder)).rejects.toMatchObject({ code: 'config.invalid', message: expect.stringContaining(folder) });
  });

  it('DESIGN 3: a folder is acquired from a process that died', async () => {
    await leaveLock({ pid: await deadProcess(), startedAtTicks: 1 });

    await lockDataFolder(folder);

    expect(JSON.parse(await readFile(lock, 'utf8'))).toMatchObject({ pid: process.pid, startedAtTicks: await startOf(process.pid) });
  });

  it('acquires a folder from a process that has ended and is not reaped yet', async () => {
    // The shell becomes a `sleep`, which never reaps the child that it inherits; the child ends after that, because a shell would reap it.
    const pid = Number(await lineOf(run('sh', ['-c', '(until grep -q sleep /proc/$$/comm; do :; done) & echo $!; exec sleep 60'])));
    await expect.poll(() => stateOf(pid), { timeout: 60_000 }).toBe('Z');
    await leaveLock({ pid, startedAtTicks: await startOf(pid) });

    await lockDataFolder(folder);

    expect(JSON.parse(await readFile(lock, 'utf8'))).toMatchObject({ pid: process.pid });
  });

  it('acquires a folder when another program has the process id by now', async () => {
    const pid = await liveProcess();
    await leaveLock({ pid, startedAtTicks: (await startOf(pid)) - 1 });

    await lockDataFolder(folder);

    expect(JSON.parse(await readFile(lock, 'utf8'))).toMatchObject({ pid: process.pid });
  });

  it.each(['', '{"pid":12', 'null', '{"pid":-1,"startedAtTicks":1,"command":"x"}', '{"pid":"1"}'])('acquires a folder from a torn lock: %j', async (text) => {
    await leaveLock(text);

    await lockDataFolder(folder);

    expect(JSON.parse(await readFile(lock, 'utf8'))).toMatchObject({ pid: process.pid });
  });

  it('acquires a folder when the process that was acquiring it died too', async () => {
    const dead = { pid: await deadProcess(), startedAtTicks: 1 };
    await leaveLock(dead);
    const guard = `${lock}.${createHash('sha256')
      .update(await readFile(lock))
      .digest('hex')
      .slice(0, 32)}`;
    await writeFile(guard, JSON.stringify({ ...dead, command: 'node main.js', nonce: 'left behind as well' }));

    await lockDataFolder(folder);

    expect(JSON.parse(await readFile(lock, 'utf8'))).toMatchObject({ pid: process.pid });
    expect(await readdir(folder)).toEqual(['switchyard.lock']);
  });

  it('assigns a dead lock to exactly one of ten concurrent processes, every time', async () => {
    const dead = { pid: await deadProcess(), startedAtTicks: 1 };
    for (let round = 0; round < 20; round += 1) {
      await leaveLock({ ...dead, nonce: `round ${round}` });

      const takers = await Promise.allSettled(Array.from({ length: 10 }, () => lockDataFolder(folder)));

      const lost = takers.flatMap((taker) => (taker.status === 'rejected' ? [taker.reason] : []));
      expect(lost).toHaveLength(9);
      for (const reason of lost) expect(reason).toMatchObject({ code: 'storage.folder_held', details: { pid: process.pid } });
      expect(await readdir(folder)).toEqual(['switchyard.lock']);
    }
  });

  it('assigns a free folder to exactly one of ten concurrent processes', async () => {
    const takers = await Promise.allSettled(Array.from({ length: 10 }, () => lockDataFolder(folder)));

    expect(takers.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
  });

  it('creates the folder with permissions for its owner only, and unlocks it at the release', async () => {
    const first = await lockDataFolder(folder);
    expect((await stat(folder)).mode & 0o777).toBe(0o700);
    await first.release();
    expect(await readdir(folder)).toEqual([]);

    const second = await lockDataFolder(folder);
    await first.release();
    await expect(lockDataFolder(folder)).rejects.toMatchObject({ code: 'storage.folder_held' });
    await second.release();
  });
});

async function fieldsOf(pid: number): Promise<string[]> {
  const text = await readFile(`/proc/${pid}/stat`, 'utf8');
  return text.slice(text.lastIndexOf(')') + 2).split(' ');
}

async function startOf(pid: number): Promise<number> {
  return Number((await fieldsOf(pid))[19]);
}

async function stateOf(pid: number): Promise<string | undefined> {
  return (await fieldsOf(pid))[0];
}
