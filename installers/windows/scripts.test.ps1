<#
.SYNOPSIS
Runs install.ps1 and uninstall.ps1 on a machine that only pretends, with any PowerShell from 7.0 on under Linux: `pwsh -NoProfile -File scripts.test.ps1`. Prints "ok" or "FAIL" and
a sentence for each thing that must be so; scripts.test.ts calls it where there is a pwsh.

.DESCRIPTION
Drive C: is a directory; Windows' services, firewall, features, registry and HNS are the functions below, which note what they were told in $Machine. As under Windows PowerShell 5.1, what
a program says on stderr is an error record: with $ErrorActionPreference 'Stop' it ends the script, unless the script sees to it.
#>
Set-StrictMode -Version Latest
$ErrorActionPreference = 'Stop'
$Root = Join-Path ([IO.Path]::GetTempPath()) "coracle-windows-$PID"
$Failed = 0
New-PSDrive -Name C -PSProvider FileSystem -Root (New-Item -ItemType Directory -Path (Join-Path $Root 'c')).FullName -Scope Global | Out-Null
$env:ProgramFiles = 'C:\Program Files'
$env:ProgramData = 'C:\ProgramData'
$env:CORACLE_URL = $env:CORACLE_TOKEN = $null

# ---- the machine ----------------------------------------------------------------------------------------------------------------------------------------------------------------------

function New-Machine {
  Get-ChildItem 'C:\' -Force | Remove-Item -Recurse -Force
  foreach ($directory in 'C:\Program Files', 'C:\ProgramData', 'C:\media\bin', 'C:\media\cni') { New-Item -ItemType Directory -Path $directory -Force | Out-Null }
  New-Program 'C:\media\coracle.exe' 'echo "coracle v1.36.0-test"; echo more'
  New-Program 'C:\media\bin\containerd.exe' 'case "$1" in config) echo "version = 3";; --register-service) echo "level=info" >&2; touch "$0.service";; --unregister-service) rm "$0.service";; esac'
  New-Program 'C:\media\bin\ctr.exe' 'case "$*" in *list*) echo a; echo b;; *) echo "ctr: gone" >&2; exit 1;; esac'
  foreach ($plugin in 'win-overlay.exe', 'host-local.exe') { New-Program "C:\media\cni\$plugin" 'true' }
  $listener = [Net.Sockets.TcpListener]::new([Net.IPAddress]::Loopback, 0)
  $listener.Start(); $port = $listener.LocalEndpoint.Port; $listener.Stop()
  $global:Machine = @{
    build = 20348; feature = 'Enabled'; restartNeeded = $false; services = @{}; rules = [ordered]@{}; privateTo = @{}; sc = @(); comesUp = $true; startFails = $false
    port = $port; listener = $null; networks = @(); removed = @()
  }
}

function New-Program([string] $Path, [string] $Script) {
  Set-Content -Path $Path -Value "#!/bin/sh`n$Script"
  chmod +x (Convert-Path $Path)
}

function Start-Listening { $Machine.listener = [Net.Sockets.TcpListener]::new([Net.IPAddress]::Loopback, $Machine.port); $Machine.listener.Start() }
function Stop-Listening { if ($Machine.listener) { $Machine.listener.Stop(); $Machine.listener = $null } }

function Get-Service {
  [CmdletBinding()] param([string] $Name)
  if ($Name -eq 'containerd') { Sync-Containerd }
  if (-not $Machine.services.ContainsKey($Name)) { Write-Error "Cannot find any service with service name '$Name'."; return }
  $Machine.services[$Name]
}
# It registers itself, and takes itself away again.
function Sync-Containerd {
  $has = Test-Path 'C:\Program Files\containerd\containerd.exe.service'
  if ($has -and -not $Machine.services.ContainsKey('containerd')) { New-Service -Name containerd | Out-Null }
  elseif (-not $has -and $Machine.services.ContainsKey('containerd') -and -not $Machine.services.containerd.ImagePath) { $Machine.services.Remove('containerd') }
}
function New-Service {
  [CmdletBinding()] param([string] $Name, [string] $BinaryPathName, [string] $DisplayName, [string] $Description, [string] $StartupType, [string[]] $DependsOn)
  if ($Machine.services.ContainsKey($Name)) { throw "service $Name is there already" }
  $service = [pscustomobject]@{ Name = $Name; Status = 'Stopped'; ImagePath = $BinaryPathName; StartupType = $StartupType; DependsOn = $DependsOn }
  $service | Add-Member -MemberType ScriptMethod -Name WaitForStatus -Value { param($status, $within) if ($this.Status -ne $status) { throw "timeout after $within" } }
  $Machine.services[$Name] = $service
  $service
}
function Start-Service {
  [CmdletBinding()] param([string] $Name)
  $service = Get-Service $Name
  if ($service.Status -eq 'Running') { return }
  if ($Name -eq 'coracle') {
    if ($Machine.services[$service.DependsOn[0]].Status -ne 'Running') { throw "$($service.DependsOn) does not run" }
    if (-not (Test-Path 'C:\Program Files\Coracle\coracle.exe')) { throw 'its executable is not there' }
    if ($Machine.startFails) { Write-Error "Failed to start service 'Coracle agent (coracle)'."; return }
    if (-not $Machine.comesUp) {
      New-Item -ItemType Directory -Path 'C:\var\lib\coracle\agent' -Force | Out-Null
      Set-Content 'C:\var\lib\coracle\agent\coracle.log' '{"msg":"coracle agent failed: the token is not valid"}'
      return # it has ended at once
    }
    New-Item -ItemType Directory -Path 'C:\Program Files\containerd\cni\conf', 'C:\var\lib\coracle\agent', 'C:\var\log\pods\a_b_c', 'C:\var\log\containers' -Force | Out-Null
    Set-Content 'C:\Program Files\containerd\cni\conf\10-coracle.conflist' '{}'
    Start-Listening
  }
  $service.Status = 'Running'
}
function Stop-Service { [CmdletBinding()] param([string] $Name) if (-not $Machine.services.ContainsKey($Name)) { Write-Error "no service $Name"; return }; $Machine.services[$Name].Status = 'Stopped'; if ($Name -eq 'coracle') { Stop-Listening } }
function Stop-Process { [CmdletBinding()] param([Parameter(ValueFromPipeline)] $InputObject, [switch] $Force) process { throw 'no process of this machine may be ended' } }

function Get-ItemProperty([string] $Path) {
  if ($Path -notlike 'HKLM:\SOFTWARE\Microsoft\Windows NT\CurrentVersion') { throw "no such key: $Path" }
  [pscustomobject]@{ CurrentBuildNumber = "$($Machine.build)" }
}
function Set-ItemProperty([string] $Path, [string] $Name, $Value) {
  if ($Path -notmatch '^HKLM:\\SYSTEM\\CurrentControlSet\\Services\\(\w+)$') { throw "no such key: $Path" }
  $Machine.services[$Matches[1]].$Name = $Value
}
function Get-WindowsOptionalFeature([switch] $Online, [string] $FeatureName) { [pscustomobject]@{ FeatureName = $FeatureName; State = $Machine.feature } }
function Enable-WindowsOptionalFeature([switch] $Online, [string] $FeatureName, [switch] $All, [switch] $NoRestart) {
  $Machine.feature = 'Enabled'
  [pscustomobject]@{ RestartNeeded = $Machine.restartNeeded }
}
function Get-NetFirewallRule {
  [CmdletBinding()] param([string] $Name)
  if (-not $Machine.rules.Contains($Name)) { Write-Error "No MSFT_NetFirewallRule objects found with property 'InstanceID' equal to '$Name'."; return }
  $Machine.rules[$Name]
}
function New-NetFirewallRule {
  [CmdletBinding()] param([string] $Name, [string] $DisplayName, [string] $Direction, [string] $Action, [string] $Protocol, [int] $LocalPort)
  if ($Machine.rules.Contains($Name)) { Write-Error 'Cannot create a file when that file already exists.'; return }
  $Machine.rules[$Name] = "$Direction $Action $Protocol $LocalPort"
}
function Remove-NetFirewallRule { [CmdletBinding()] param([string] $Name) if ($Machine.rules.Contains($Name)) { $Machine.rules.Remove($Name) } else { Write-Error "no rule $Name" } }

# Both say something on stderr, which is nothing to stop for.
function icacls.exe { [CmdletBinding()] param([Parameter(ValueFromRemainingArguments)] $Words) $Machine.privateTo[$Words[0]] = @($Words | Select-Object -Skip 1); $global:LASTEXITCODE = 0; Write-Error 'processing' }
function sc.exe {
  [CmdletBinding()] param([Parameter(ValueFromRemainingArguments)] $Words)
  $Machine.sc += , ($Words -join ' ')
  $global:LASTEXITCODE = 0
  if ($Words[0] -eq 'delete') { $Machine.services.Remove($Words[1]) }
  Write-Error '[SC] SUCCESS'
}

function Get-HnsNetwork { $Machine.networks | ForEach-Object { [pscustomobject]@{ Name = $_; ID = "id-$_" } } }
function Get-HnsPolicyList { 'policies' }
function Get-HnsEndpoint { foreach ($network in $Machine.networks) { [pscustomobject]@{ Name = "endpoint of $network"; VirtualNetwork = "id-$network" } } }
function Remove-HnsPolicyList { param([Parameter(ValueFromPipeline)] $InputObject) process { $Machine.removed += $InputObject } }
function Remove-HnsEndpoint { param([Parameter(ValueFromPipeline)] $InputObject) process { $Machine.removed += $InputObject.Name } }
function Remove-HnsNetwork { param([Parameter(ValueFromPipeline)] $InputObject) process { $Machine.networks = @($Machine.networks | Where-Object { $_ -ne $InputObject.Name }) } }

# ---- what is called, and what is said of it -------------------------------------------------------------------------------------------------------------------------------------------

# Returns what was said; errors are the last line, as "error: ...".
function Invoke-Script([string] $Name, [hashtable] $Parameters = @{}) {
  $global:LASTEXITCODE = 0
  try { & (Join-Path $PSScriptRoot $Name) @Parameters 3>&1 6>&1 | ForEach-Object { "$_" } } catch { "error: $($_.Exception.Message)" }
}
function Install([hashtable] $Parameters = @{}) { (Invoke-Script 'install.ps1' (@{ TimeoutSeconds = 3 } + $Parameters)) -join "`n" }
function Uninstall([hashtable] $Parameters = @{}) { (Invoke-Script 'uninstall.ps1' $Parameters) -join "`n" }
function Read-Config { (Get-Content 'C:\etc\coracle\config.yaml') -join ' | ' }
function Get-Services { Sync-Containerd; "$($Machine.services.Keys)" }
function Get-Inventory { @(Get-ChildItem 'C:\' -Recurse -Force | ForEach-Object { $_.FullName.Substring((Convert-Path 'C:\').Length) } | Sort-Object) -join "`n" }
function Get-Media { @{ Server = 'https://10.0.0.1:6443'; Token = 'K10aa::abc.def'; Binary = 'C:\media\coracle.exe'; ContainerdDirectory = 'C:\media\bin'; CniDirectory = 'C:\media\cni'; KubeletPort = $Machine.port } }

function Assert-That([string] $What, [bool] $Holds, [string] $Seen = '') {
  if ($Holds) { Write-Host "ok    $What"; return }
  $script:Failed++
  Write-Host "FAIL  $What`n$($Seen -replace '(?m)^', '      ')"
}
function Assert-Same([string] $What, $Seen, $Wanted) { Assert-That $What ("$Seen" -eq "$Wanted") "$Seen`ninstead of`n$Wanted" }

try {
  # a machine that has nothing
  New-Machine
  $before = Get-Inventory
  $said = Install (Get-Media)
  Assert-That 'installs on a machine that has nothing' ($said -match 'coracle v1.36.0-test is installed' -and $said -match 'the node runs') $said
  Assert-Same 'config.yaml holds the settings' (Read-Config) "server: `"https://10.0.0.1:6443`" | token: `"K10aa::abc.def`" | kubelet-port: $($Machine.port)"
  Assert-Same 'both directories are the administrators'' only' (($Machine.privateTo.GetEnumerator() | Sort-Object Name | ForEach-Object { "$($_.Name) $($_.Value)" }) -join "`n") "C:\etc\coracle /inheritance:r /grant:r *S-1-5-18:(OI)(CI)F *S-1-5-32-544:(OI)(CI)F`nC:\var\lib\coracle /inheritance:r /grant:r *S-1-5-18:(OI)(CI)F *S-1-5-32-544:(OI)(CI)F"
  Assert-Same 'the firewall lets the kubelet''s port and VXLAN in' (($Machine.rules.GetEnumerator() | ForEach-Object { "$($_.Name): $($_.Value)" }) -join ', ') "coracle-kubelet: Inbound Allow TCP $($Machine.port), coracle-vxlan: Inbound Allow UDP 4789"
  Assert-Same 'the service starts with the machine, after containerd' "$($Machine.services.coracle.ImagePath.Replace('/', '\')) $($Machine.services.coracle.StartupType) $($Machine.services.coracle.DependsOn)" '"C:\Program Files\Coracle\coracle.exe" agent --windows-service Automatic containerd'
  Assert-Same 'both services are started again when they fail' ($Machine.sc -join "`n") "failure containerd reset= 86400 actions= restart/5000/restart/5000/restart/30000`nfailure coracle reset= 86400 actions= restart/5000/restart/5000/restart/30000`nfailureflag coracle 1"
  Assert-Same 'containerd has its configuration' (Get-Content 'C:\Program Files\containerd\config.toml') 'version = 3'

  # again, and again with other settings
  New-Program 'C:\media\coracle.exe' 'echo "coracle v1.36.1-test"'
  $said = Install @{ Binary = 'C:\media\coracle.exe' }
  Assert-That 'a second run without settings upgrades, and waits at the port of before' ($said -match 'coracle v1.36.1-test is installed' -and $said -match 'the node runs') $said
  Assert-Same 'and keeps the settings' (Read-Config) "server: `"https://10.0.0.1:6443`" | token: `"K10aa::abc.def`" | kubelet-port: $($Machine.port)"
  $old = $Machine.port
  $Machine.port = $old + 1
  $said = Install @{ Binary = 'C:\media\coracle.exe'; NodeName = 'win-1'; NodeIp = '10.0.0.7'; NodeLabel = 'a=b', "c=it's <q>"; NodeTaint = @('os=windows:NoSchedule'); KubeletPort = $Machine.port }
  Assert-That 'a run with some settings' ($said -match 'the node runs') $said
  Assert-Same 'changes those and keeps the others' ((Read-Config) -replace '\\u0027', "'" -replace '\\u003c', '<' -replace '\\u003e', '>') "server: `"https://10.0.0.1:6443`" | token: `"K10aa::abc.def`" | kubelet-port: $($Machine.port) | node-name: `"win-1`" | node-ip: [`"10.0.0.7`"] | node-label: [`"a=b`",`"c=it's <q>`"] | node-taint: [`"os=windows:NoSchedule`"]"
  Assert-Same 'the firewall follows the port' $Machine.rules['coracle-kubelet'] "Inbound Allow TCP $($Machine.port)"

  # away with it
  $Machine.networks = @('coracle', 'nat')
  $said = Uninstall
  Assert-That 'uninstall says that nothing is left' ($said -match '0 things are left') $said
  Assert-Same 'files and directories are those of before' (Get-Inventory) $before
  Assert-Same 'services, firewall rules and the pods'' network are gone, other networks are not' "$(Get-Services) $($Machine.rules.Keys) $($Machine.networks)" '  nat'
  Assert-Same 'with the network went its endpoints, and no others' ($Machine.removed -join ', ') 'policies, endpoint of coracle'
  $said = Uninstall
  Assert-That 'uninstall on a machine without Coracle does nothing' ($said -match '0 things are left') $said

  # with a config.yaml of its owner's
  New-Machine
  New-Item -ItemType Directory -Path 'C:\etc\coracle' -Force | Out-Null
  $owned = @('# this shed', 'server: https://10.0.0.1:6443', 'token-file: C:\etc\coracle\token', 'node-label:', '- shed=3', '- a=b', '', '# what may run here', 'node-taint+: [', '  x=y:NoSchedule]', "kubelet-port: '$($Machine.port)' # free", 'node-name: >-', '  win-7')
  Set-Content 'C:\etc\coracle\config.yaml' $owned
  $media = @{ Binary = 'C:\media\coracle.exe'; ContainerdDirectory = 'C:\media\bin'; CniDirectory = 'C:\media\cni' }
  $said = Install $media
  Assert-That 'a config.yaml that is there is enough, also with the token in a file' ($said -match 'the node runs') $said
  Assert-Same 'and stays as its owner has written it' (Read-Config) ($owned -join ' | ')
  Install ($media + @{ NodeTaint = 'p=q:NoSchedule' }) | Out-Null
  $owned[8] = 'node-taint: ["p=q:NoSchedule"]'; $owned[9] = $null
  Assert-Same 'what is given takes the place of what stands there, on however many lines' (Read-Config) (@($owned | Where-Object { $null -ne $_ }) -join ' | ')
  Install ($media + @{ NodeLabel = 'c=d' }) | Out-Null
  $owned[3] = 'node-label: ["c=d"]'; $owned[4] = $owned[5] = $null
  Assert-Same 'and leaves the comments of what follows' (Read-Config) (@($owned | Where-Object { $null -ne $_ }) -join ' | ')
  Set-Content 'C:\etc\coracle\config.yaml' '{"server": "https://10.0.0.1:6443"}'
  $said = Install $media
  Assert-That 'one whose settings do not begin lines is not written over' ($said -match '(?m)^error: .*begins with no setting' -and (Read-Config) -eq '{"server": "https://10.0.0.1:6443"}') $said
  Uninstall | Out-Null

  # by environment variables, with a containerd and plugins that were there before
  New-Machine
  New-Item -ItemType Directory -Path 'C:\Program Files\containerd\cni\bin' -Force | Out-Null
  Copy-Item 'C:\media\bin\*.exe' 'C:\Program Files\containerd'
  Set-Content 'C:\Program Files\containerd\cni\bin\host-local.exe' 'theirs'
  New-Service -Name containerd -BinaryPathName containerd.exe | Out-Null
  $before = Get-Inventory
  $env:CORACLE_URL = 'https://a:6443,https://b:6443'; $env:CORACLE_TOKEN = 'secret'
  $said = Install @{ Binary = 'C:\media\coracle.exe'; CniDirectory = 'C:\media\cni'; KubeletPort = $Machine.port }
  $env:CORACLE_URL = $env:CORACLE_TOKEN = $null
  Assert-That 'CORACLE_URL and CORACLE_TOKEN stand for -Server and -Token' ($said -match 'the node runs' -and (Read-Config) -match '^server: "https://a:6443,https://b:6443" \| token: "secret"') "$said`n$(Read-Config)"
  $said = Uninstall
  Assert-That 'what was there before the installation' ($said -match '0 things are left') $said
  Assert-Same 'is there after it' "$(Get-Inventory) $(Get-Services)" "$before containerd"

  # -KeepData
  New-Machine
  Install (Get-Media) | Out-Null
  $said = Uninstall @{ KeepData = $true }
  Assert-That '-KeepData keeps settings and data' ((Test-Path 'C:\etc\coracle\config.yaml') -and (Test-Path 'C:\var\lib\coracle\agent') -and -not (Test-Path 'C:\Program Files\Coracle') -and (Get-Services) -eq '') $said
  New-Item -ItemType Directory -Path 'C:\Program Files\containerd\cni\bin' -Force | Out-Null
  Copy-Item 'C:\media\bin\*.exe' 'C:\Program Files\containerd'
  Copy-Item 'C:\media\cni\*.exe' 'C:\Program Files\containerd\cni\bin'
  New-Service -Name containerd -BinaryPathName containerd.exe | Out-Null
  $said = Install @{ Binary = 'C:\media\coracle.exe' }
  Assert-That 'another installation goes on with them' ($said -match 'the node runs') $said
  Uninstall | Out-Null
  Assert-That 'and takes no containerd away that somebody has installed meanwhile' ($Machine.services.ContainsKey('containerd') -and (Test-Path 'C:\Program Files\containerd\containerd.exe') -and -not (Test-Path 'C:\etc'))

  # what cannot be
  foreach ($case in @(
      @{ what = 'an old Windows'; machine = { $Machine.build = 17134 }; change = { }; says = 'build 17134 of Windows.*17763' },
      @{ what = 'no server'; machine = { }; change = { $settings.Remove('Server') }; says = 'which cluster\? -Server' },
      @{ what = 'a server that is no address'; machine = { }; change = { $settings.Server = '10.0.0.1' }; says = 'https://host:port' },
      @{ what = 'no token'; machine = { }; change = { $settings.Remove('Token') }; says = '-Token' },
      @{ what = 'no executable'; machine = { }; change = { $settings.Binary = 'C:\nowhere.exe' }; says = 'nowhere.exe' },
      @{ what = 'no containerd'; machine = { }; change = { $settings.Remove('ContainerdDirectory') }; says = 'containerd is not a service of this machine' },
      @{ what = 'an empty directory for containerd'; machine = { }; change = { $settings.ContainerdDirectory = 'C:\media\cni' }; says = 'has no containerd.exe' },
      @{ what = 'no CNI plugins'; machine = { }; change = { $settings.Remove('CniDirectory') }; says = 'has no host-local.exe' },
      @{ what = 'a start that fails'; machine = { $Machine.startFails = $true }; change = { }; says = 'Failed to start service' },
      @{ what = 'a wrong token'; machine = { $Machine.comesUp = $false }; change = { }; says = '(?s)the token is not valid.*has not come up' })) {
    New-Machine
    $before = Get-Inventory
    $settings = Get-Media
    & $case.machine; & $case.change
    $said = Install $settings
    Assert-That "$($case.what): says so" ($said -match $case.says -and $said -match '(?m)^error: ') $said
    $said = Uninstall
    Assert-Same "$($case.what): uninstall takes back what was done" "$(Get-Inventory) $(Get-Services) $($Machine.rules.Keys)" "$before  "
  }

  # the Containers feature
  New-Machine
  $Machine.feature = 'Disabled'; $Machine.restartNeeded = $true
  $said = Install (Get-Media)
  Assert-That 'exit code 3010 when Windows must restart first' ($LASTEXITCODE -eq 3010 -and $said -match 'restart this machine') "$LASTEXITCODE $said"
  $said = Install (Get-Media)
  Assert-That 'the run after the restart installs' ($said -match 'the node runs') $said
  Uninstall | Out-Null

  # -SkipStart
  New-Machine
  $said = Install ((Get-Media) + @{ SkipStart = $true })
  Assert-Same '-SkipStart registers the service and does not start it' $Machine.services.coracle.Status 'Stopped'
  Uninstall | Out-Null

  # what fails is told, and does not keep the rest
  New-Machine
  Install (Get-Media) | Out-Null
  function Remove-HnsNetwork { param([Parameter(ValueFromPipeline)] $InputObject) process { throw 'HNS failed with error: the parameter is incorrect' } }
  $Machine.networks = @('coracle')
  $said = Uninstall
  Assert-That 'uninstall goes on after a failure, and says what is left' ((Test-Path 'C:\etc\coracle\installed.json') -and $said -match 'the pod network: HNS failed' -and $said -match 'things that are left: 1' -and -not $Machine.services.ContainsKey('coracle')) $said
  function Remove-HnsNetwork { param([Parameter(ValueFromPipeline)] $InputObject) process { $Machine.networks = @() } }
  $said = Uninstall
  Assert-That 'and can be run again' ($said -match '0 things are left' -and -not (Test-Path 'C:\etc') -and -not (Test-Path 'C:\var')) $said
} finally {
  Stop-Listening
  Remove-PSDrive C
  Remove-Item $Root -Recurse -Force
}
Write-Host "$Failed failed"
exit [Math]::Min($Failed, 1)
