<#
.SYNOPSIS
Removes what install.ps1 has put on this machine: the service, its pods' network, firewall rules, executables, settings and data.

.DESCRIPTION
  .\uninstall.ps1               everything
  .\uninstall.ps1 -KeepData     leaves C:\var\lib\coracle and C:\etc\coracle, for another installation

containerd, the CNI plugins and directories stay if they were there before: C:\etc\coracle\installed.json says what was made. Goes on after a failure, and says at the end what
is left; C:\etc\coracle then stays, too, and the script can be run again. The Node stays in the cluster: kubectl delete node <name>.
#>
#Requires -Version 5.1
#Requires -RunAsAdministrator
[CmdletBinding()]
param([switch] $KeepData)
Set-StrictMode -Version Latest
$ErrorActionPreference = 'Stop'

$ServiceName = 'coracle'
$ProgramDirectory = Join-Path $env:ProgramFiles 'Coracle'
$ConfigDirectory = 'C:\etc\coracle'
$DataDirectory = 'C:\var\lib\coracle'
$RecordFile = Join-Path $ConfigDirectory 'installed.json'
$Containerd = Join-Path $env:ProgramFiles 'containerd'
$CniFile = Join-Path $Containerd 'cni\conf\10-coracle.conflist'
$NetworkName = 'coracle'
$Failures = @()

$Record = @{ firewallRules = @(); containerd = $false; cniPlugins = @(); directories = @() }
if (Test-Path $RecordFile) { (Get-Content $RecordFile -Raw | ConvertFrom-Json).PSObject.Properties | ForEach-Object { $Record[$_.Name] = $_.Value } }

# One thing to remove: what fails is told at the end.
function Step([string] $What, [scriptblock] $Work) {
  try { & $Work } catch { $script:Failures += "$What`: $($_.Exception.Message)" }
}

# Returns what a program says on stdout. Words on stderr do not end the script, as they would under 'Stop' in Windows PowerShell.
function Invoke-Program([string] $Program, [string[]] $Arguments) {
  $ErrorActionPreference = 'Continue'
  & $Program @Arguments 2>&1 | Where-Object { $_ -isnot [Management.Automation.ErrorRecord] }
}

function Remove-IfThere([string] $Path) {
  if (-not (Test-Path $Path)) { return }
  # links and junctions first, so that nothing is deleted through one
  Get-ChildItem -Path $Path -Recurse -Force -Attributes ReparsePoint -ErrorAction SilentlyContinue | ForEach-Object { $_.Delete() }
  Remove-Item -Path $Path -Recurse -Force
}

Step 'the service' {
  $service = Get-Service $ServiceName -ErrorAction SilentlyContinue
  if ($service) {
    if ($service.Status -ne 'Stopped') { Stop-Service $ServiceName; $service.WaitForStatus('Stopped', [TimeSpan]::FromSeconds(60)) }
    Invoke-Program sc.exe @('delete', $ServiceName) | Out-Null
    if ($LASTEXITCODE -ne 0) { throw "sc.exe delete: exit code $LASTEXITCODE" }
  }
}

Step 'pods' {
  $ctr = Join-Path $Containerd 'ctr.exe'
  if ((Test-Path $RecordFile) -and (Test-Path $ctr)) {
    foreach ($task in (Invoke-Program $ctr @('--namespace', 'k8s.io', 'tasks', 'list', '--quiet'))) { Invoke-Program $ctr @('--namespace', 'k8s.io', 'tasks', 'kill', '--signal', 'SIGKILL', $task) | Out-Null }
    foreach ($container in (Invoke-Program $ctr @('--namespace', 'k8s.io', 'containers', 'list', '--quiet'))) { Invoke-Program $ctr @('--namespace', 'k8s.io', 'containers', 'delete', $container) | Out-Null }
  }
}

Step 'the pod network' {
  if (Test-Path $CniFile) { Remove-Item $CniFile }
  if (Get-Command Get-HnsNetwork -ErrorAction SilentlyContinue) {
    $network = Get-HnsNetwork | Where-Object { $_.Name -eq $NetworkName }
    if ($network) {
      Get-HnsPolicyList | Remove-HnsPolicyList
      Get-HnsEndpoint | Where-Object { $_.VirtualNetwork -eq $network.ID } | Remove-HnsEndpoint
      $network | Remove-HnsNetwork
    }
  } elseif (Get-Command hnsdiag.exe -ErrorAction SilentlyContinue) {
    $ids = Invoke-Program hnsdiag.exe @('list', 'networks', '-d') | ConvertFrom-Json | ForEach-Object { $_ } | Where-Object { $_.Name -eq $NetworkName } | ForEach-Object { $_.ID }
    foreach ($id in $ids) { Invoke-Program hnsdiag.exe @('delete', 'networks', $id) | Out-Null }
  }
}

foreach ($rule in $Record.firewallRules) {
  Step "firewall rule $rule" { if (Get-NetFirewallRule -Name $rule -ErrorAction SilentlyContinue) { Remove-NetFirewallRule -Name $rule } }
}
foreach ($plugin in $Record.cniPlugins) { Step $plugin { Remove-IfThere $plugin } }
if ($Record.containerd) {
  Step 'containerd' {
    if (Get-Service containerd -ErrorAction SilentlyContinue) {
      Stop-Service containerd
      Get-Process containerd-shim-runhcs-v1 -ErrorAction SilentlyContinue | Stop-Process -Force
      Invoke-Program (Join-Path $Containerd 'containerd.exe') @('--unregister-service') | Out-Null
      if ($LASTEXITCODE -ne 0) { throw "containerd --unregister-service: exit code $LASTEXITCODE" }
    }
    Remove-IfThere $Containerd
    Remove-IfThere (Join-Path $env:ProgramData 'containerd')
  }
}
Step $ProgramDirectory { Remove-IfThere $ProgramDirectory }
if ($KeepData) {
  # another installation finds its settings, and what is still its own
  if ((Test-Path $RecordFile) -and -not $Failures.Count) { @{ firewallRules = @(); containerd = $false; cniPlugins = @(); directories = @($Record.directories) } | ConvertTo-Json | Set-Content -Path $RecordFile -Encoding UTF8 }
} else {
  foreach ($path in 'C:\var\log\containers', 'C:\var\log\pods', $DataDirectory) { Step $path { Remove-IfThere $path } }
  # with the record: what has failed can be tried again
  if (-not $Failures.Count) { Step $ConfigDirectory { Remove-IfThere $ConfigDirectory } }
  # those around them, deepest first, unless somebody else has put something there
  foreach ($directory in @($Record.directories) | Sort-Object -Property Length -Descending) {
    Step $directory { if ((Test-Path $directory) -and -not (Get-ChildItem $directory -Force)) { Remove-Item $directory } }
  }
}

if ($Failures.Count) {
  $Failures | ForEach-Object { Write-Warning $_ }
  throw "things that are left: $($Failures.Count)"
}
Write-Host '[coracle] 0 things are left'
