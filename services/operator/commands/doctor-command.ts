import type { Command } from 'commander';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { CommandDeps } from './dependencies.ts';

const MARKS = { ok: 'ok     ', warning: 'warning', failed: 'failed ' } as const;

export function addDoctorCommand(program: Command, { environment, openDatabase, inspectStreams, pingCache, print, progress, clock }: CommandDeps): void {
  program
    .command('doctor')
    .description('looks at Node, ports, disk, stores, streams, clocks, servers, providers and certificates, and says the fix of each finding')
    .option('--offline', 'connects to no other machine but the stores')
    .option('--json', 'the findings as a JSON array')
    .action(async ({ offline = false, json = false }: { offline?: boolean; json?: boolean }) => {
      const [{ examine }, { machineChecks }, { storeChecks }] = await Promise.all([
        import('../doctor/finding.ts'),
        import('../doctor/machine-checks.ts'),
        import('../doctor/store-checks.ts'),
      ]);
      const checks = [...machineChecks(environment), ...storeChecks({ environment, openDatabase, inspectStreams, pingCache, clock })];
      if (!offline) checks.push(...(await import('../doctor/network-checks.ts')).networkChecks(environment, clock));
      const findings = await examine(checks, progress);
      if (json) print(JSON.stringify(findings, null, 2));
      else {
        for (const { check, status, detail, fix } of findings) {
          print(`${MARKS[status]}  ${check}: ${detail}`);
          if (fix !== null) print(`         fix: ${fix}`);
        }
      }
      const failed = findings.filter(({ status }) => status === 'failed').length;
      if (failed > 0) throw new SwitchyardError('config.invalid', failed === 1 ? '1 check has failed' : `${failed} checks have failed`);
    });
}
