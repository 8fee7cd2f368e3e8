<#
.SYNOPSIS
Removes what install.ps1 has put on this machine: the service, its pods' network, firewall rules, executables, settings and data.

.DESCRIPTION
  .\uninstall.ps1               everything
  .\uninstall.ps1 -KeepData     leaves C:\var\lib\coracle and C:\etc\coracle, for another installation

Only what C:\etc\coracle\installed.json names is removed; containerd and the CNI plugins stay if they were there before. Goes on after a failure, and says at the end what
is left. The Node stays in the cluster: kubectl delete node <name>.
#>
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

$identity = [Security.Principal.WindowsPrincipal][Security.Principal.WindowsIdentity]::GetCurrent()
if (-not $identity.IsInRole([Security.Principal.WindowsBuiltInRole]::Administrator)) { throw 'run it as administrator' }

$Record = @{ firewallRules = @(); containerd = $false; cniPlugins = @(); directories = @() }
if (Test-Path $RecordFile) { (Get-Content $RecordFile -Raw | ConvertFrom-Json).PSObject.Properties | ForEach-Object { $Record[$_.Name] = $_.Value } }

# One thing to remove: what fails is told at the end.
function Step([string] $What, [scriptblock] $Work) {
  try { & $Work } catch { $script:Failures += "$What`: $($_.Exception.Message)" }
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
    & sc.exe delete $ServiceName | Out-Null
    if ($LASTEXITCODE -ne 0) { throw "sc.exe delete: exit code $LASTEXITCODE" }
  }
}

Step 'pods' {
  $ctr = Join-Path $Containerd 'ctr.exe'
  if (Test-Path $ctr) {
    foreach ($task in (& $ctr --namespace k8s.io tasks list --quiet)) { & $ctr --namespace k8s.io tasks kill --signal SIGKILL $task 2>&1 | Out-Null }
    foreach ($container in (& $ctr --namespace k8s.io containers list --quiet)) { & $ctr --namespace k8s.io containers delete $container 2>&1 | Out-Null }
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
    $ids = & hnsdiag.exe list networks -d | ConvertFrom-Json | ForEach-Object { $_ } | Where-Object { $_.Name -eq $NetworkName } | ForEach-Object { $_.ID }
    foreach ($id in $ids) { & hnsdiag.exe delete networks $id | Out-Null }
  }
}

foreach ($rule in $Record.firewallRules) { Step "firewall rule $rule" { Remove-NetFirewallRule -Name $rule -ErrorAction SilentlyContinue } }
foreach ($plugin in $Record.cniPlugins) { Step $plugin { Remove-IfThere $plugin } }
if ($Record.containerd) {
  Step 'containerd' {
    Stop-Service containerd -ErrorAction SilentlyContinue
    Get-Process containerd-shim-runhcs-v1 -ErrorAction SilentlyContinue | Stop-Process -Force
    & (Join-Path $Containerd 'containerd.exe') --unregister-service
    Remove-IfThere $Containerd
    Remove-IfThere (Join-Path $env:ProgramData 'containerd')
  }
}
Step $ProgramDirectory { Remove-IfThere $ProgramDirectory }
if (-not $KeepData) {
  foreach ($directory in @($Record.directories) | Where-Object { $_ -in $ConfigDirectory, $DataDirectory }) { Step $directory { Remove-IfThere $directory } }
}

if ($Failures.Count) {
  $Failures | ForEach-Object { Write-Warning $_ }
  throw "$($Failures.Count) things are left"
}
Write-Host '[coracle] 0 things are left'
